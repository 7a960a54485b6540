"""A plan run as branches: order, concurrency, limits, failures."""

from __future__ import annotations

import asyncio

import pytest

from decomp_router.execute.answer import Ending
from decomp_router.execute.fanout import Fanout, FanoutFailed
from decomp_router.execute.section import Piece
from decomp_router.execute.upstream import UpstreamRequest
from decomp_router.plan import Plan
from tests.decomp_router.fakes import (
    Broken,
    Finish,
    Raw,
    ScriptedUpstream,
    Thought,
    chunk,
    plan_of,
    settle,
)

A, B, C = "Describe the river Ebro.", "Explain what tides are.", "List famous lighthouses."
PARALLEL = plan_of(A, B, C)
MIXED = plan_of(A, B, C, deps={3: [1]})


class Run:
    """A fan-out under way, with what it has let out so far."""

    def __init__(self, upstream: ScriptedUpstream, plan: Plan, width: int = 4, **fields: object) -> None:
        body = {"model": "tiny", "messages": [{"role": "user", "content": plan.prompt}], **fields}
        self.pieces: list[Piece] = []
        self.fanout = Fanout(upstream, UpstreamRequest("POST", b"/v1/chat/completions", ()), body, plan, width)
        self.task = asyncio.create_task(self.fanout.run(self._emit))

    async def _emit(self, piece: Piece) -> None:
        self.pieces.append(piece)

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces if piece.field == "content")

    async def end(self) -> Ending:
        return await asyncio.wait_for(self.task, 5)


async def test_sections_are_joined_in_prompt_order_whichever_ends_first() -> None:
    late = asyncio.Event()
    upstream = ScriptedUpstream({A: [late, "River", "."], B: ["Tides", "."], C: ["Lights", "."]})
    run = Run(upstream, PARALLEL)
    await settle()
    assert sorted(upstream.closed) == sorted([B, C])
    assert run.text == ""
    late.set()
    ending = await run.end()
    assert run.text == "River.\n\nTides.\n\nLights."
    assert ending.finish == "stop"
    assert ending.usage == {
        "prompt_tokens": 30,
        "completion_tokens": 6,
        "total_tokens": 36,
        "prompt_tokens_details": {"cached_tokens": 12},
    }


async def test_branches_start_as_soon_as_their_parents_are_done() -> None:
    first, second = asyncio.Event(), asyncio.Event()
    upstream = ScriptedUpstream({A: [first, "River."], B: [second, "Tides."], C: ["Lights."]})
    run = Run(upstream, MIXED)
    await settle()
    assert upstream.opened == [A, B]
    first.set()
    await settle()
    assert upstream.opened == [A, B, C]
    assert upstream.closed == [A, C]
    second.set()
    await run.end()
    assert run.text == "River.\n\nTides.\n\nLights."


async def test_no_more_branches_at_once_than_the_width() -> None:
    gate = asyncio.Event()
    upstream = ScriptedUpstream({A: [gate, "1"], B: [gate, "2"], C: ["3"]})
    run = Run(upstream, PARALLEL, width=2)
    await settle()
    assert upstream.opened == [A, B]
    gate.set()
    await run.end()
    assert upstream.opened == [A, B, C]


async def test_the_first_section_streams_live_once_it_is_trusted() -> None:
    rest = asyncio.Event()
    words = [f"w{number} " for number in range(64)]
    upstream = ScriptedUpstream({A: [*words[:63], rest, *words[63:]], B: ["Tides."], C: ["Lights."]})
    run = Run(upstream, PARALLEL)
    await settle()
    assert run.text == ""
    rest.set()
    await run.end()
    assert run.text == "".join(words).strip() + "\n\nTides.\n\nLights."


async def test_trusted_text_does_not_wait_for_its_end() -> None:
    rest = asyncio.Event()
    words = [f"w{number} " for number in range(70)]
    run = Run(ScriptedUpstream({A: [*words, rest], B: ["Tides."], C: ["Lights."]}), PARALLEL)
    await settle()
    assert run.text == "".join(words).strip()
    rest.set()
    await run.end()


async def test_a_first_section_that_answers_a_sibling_too_is_not_let_out() -> None:
    upstream = ScriptedUpstream({A: ["A river.\n", f"## {B}\n", "Tides."], B: ["Tides."], C: ["Lights."]})
    run = Run(upstream, PARALLEL)
    with pytest.raises(FanoutFailed, match="another part") as failure:
        await run.end()
    assert not failure.value.sent
    assert run.pieces == []


async def test_a_later_section_is_cut_where_it_goes_on_to_a_sibling() -> None:
    upstream = ScriptedUpstream({A: ["River."], B: ["Tides.\n\n", f"**{C}**\n", "Lights."], C: ["Lights."]})
    run = Run(upstream, PARALLEL)
    await run.end()
    assert run.text == "River.\n\nTides.\n\nLights."


async def test_max_tokens_caps_the_merged_text() -> None:
    upstream = ScriptedUpstream({A: ["a"] * 40, B: ["b"] * 40, C: ["c"] * 40})
    run = Run(upstream, PARALLEL, max_tokens=64)
    ending = await run.end()
    assert run.text == "a" * 40 + "\n\n" + "b" * 24
    assert ending.finish == "length"


async def test_a_stop_string_ends_the_answer_and_cancels_the_rest() -> None:
    never = asyncio.Event()
    upstream = ScriptedUpstream({A: ["River."], B: ["Tides EN", "D and more"], C: [never]})
    run = Run(upstream, PARALLEL, stop="END")
    ending = await run.end()
    assert run.text == "River.\n\nTides "
    assert ending.finish == "stop"
    assert C in upstream.closed


async def test_what_only_looks_like_a_stop_string_is_let_out() -> None:
    run = Run(ScriptedUpstream({A: ["x EN"], B: ["TER y EN"], C: ["z"]}), PARALLEL, stop=["END", ""])
    await run.end()
    assert run.text == "x EN\n\nTER y EN\n\nz"


async def test_one_branch_cut_by_its_length_makes_the_finish_reason() -> None:
    run = Run(ScriptedUpstream({A: ["a"], B: ["b", Finish("length")], C: ["c"]}), PARALLEL)
    assert (await run.end()).finish == "length"


async def test_reasoning_never_follows_content() -> None:
    slow = asyncio.Event()
    upstream = ScriptedUpstream({A: ["River."], B: [Thought("hm"), slow, "Tides."], C: [Thought("so"), "Lights."]})
    run = Run(upstream, PARALLEL)
    await settle()
    assert run.text == ""
    slow.set()
    await run.end()
    assert [(p.field, p.text) for p in run.pieces] == [
        ("reasoning_content", "hm"),
        ("reasoning_content", "so"),
        ("content", "River."),
        ("content", "\n\nTides."),
        ("content", "\n\nLights."),
    ]


async def test_inline_reasoning_is_not_merged() -> None:
    run = Run(ScriptedUpstream({A: ["<think>", "hm</think>River."], B: ["b"], C: ["c"]}), PARALLEL)
    with pytest.raises(FanoutFailed, match="reasons inside"):
        await run.end()


async def test_a_failed_branch_is_tried_again() -> None:
    upstream = ScriptedUpstream(
        {A: [["Ri", Broken()], ["River."]], B: [["Ti", Broken()], ["Tides."]], C: [[Broken()], ["Lights."]]}
    )
    run = Run(upstream, PARALLEL)
    await run.end()
    assert run.text == "River.\n\nTides.\n\nLights."
    assert [upstream.opened.count(part) for part in (A, B, C)] == [2, 2, 2]


@pytest.mark.parametrize(
    "fault",
    [
        Broken(),
        Raw(b""),
        Raw(b"data: {not json\n\n"),
        Raw(b"data: 3\n\n"),
        Raw(b"data: " + b"[" * 100_000 + b"\n\n"),
        Raw(b'data: {"error": {"message": "out of memory"}}\n\n'),
        Raw(b"data: [DONE]\n\n"),
        Raw(chunk({"content": "half"})),
        Raw(b'data: {"choices": [{"delta": 3}]}\n\n'),
    ],
)
async def test_two_failures_before_anything_was_sent(fault: Broken | Raw) -> None:
    never = asyncio.Event()
    upstream = ScriptedUpstream({A: [never], B: [[fault], [fault]], C: [never]})
    run = Run(upstream, PARALLEL)
    with pytest.raises(FanoutFailed, match="upstream") as failure:
        await run.end()
    assert not failure.value.sent
    assert sorted(upstream.closed) == sorted(upstream.opened)


async def test_what_was_sent_is_not_repeated() -> None:
    rest = asyncio.Event()
    words = [f"w{number} " for number in range(64)]
    upstream = ScriptedUpstream({A: [[*words, rest, Broken()]], B: ["Tides."], C: ["Lights."]})
    run = Run(upstream, PARALLEL)
    await settle()
    rest.set()
    with pytest.raises(FanoutFailed, match="broke off") as failure:
        await run.end()
    assert failure.value.sent
    assert upstream.opened.count(A) == 1


async def test_cancelling_it_cancels_every_branch() -> None:
    never = asyncio.Event()
    upstream = ScriptedUpstream({A: [never], B: [never], C: [never]})
    run = Run(upstream, PARALLEL)
    await settle()
    run.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run.end()
    assert sorted(upstream.closed) == sorted([A, B, C])


async def test_timings_tell_when_each_branch_ran() -> None:
    upstream = ScriptedUpstream({A: ["1", "2"], B: ["3"], C: ["4"]})
    run = Run(upstream, MIXED)
    await run.end()
    timings = run.fanout.timings
    assert [timing.tokens for timing in timings.values()] == [2, 1, 1]
    ended, started = timings["t1"].ended_s, timings["t3"].started_s
    assert ended is not None
    assert started is not None
    assert ended <= started


async def test_a_child_is_told_what_all_its_ancestors_said() -> None:
    upstream = ScriptedUpstream({A: ["River."], B: ["Tides."], C: ["Lights."]})
    await Run(upstream, plan_of(A, B, C, deps={2: [1], 3: [2]})).end()
    *_, said, last = upstream.bodies[-1]["messages"]
    assert said == {"role": "assistant", "content": "River.\n\nTides."}
    assert last["role"] == "user"
    assert C in last["content"]
