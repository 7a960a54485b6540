"""Any DAG and any chunking give the sections in prompt order, streamed or not."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from decomp_router.execute.fanout import Fanout, FanoutFailed
from decomp_router.execute.section import Piece
from decomp_router.execute.upstream import UpstreamRequest
from decomp_router.plan import Plan
from tests.decomp_router.fakes import Broken, Script, ScriptedUpstream, plan_of, rechunking

NAMES = ["Ebro", "Tajo", "Duero", "Júcar", "Miño"]


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    count = draw(st.integers(2, len(NAMES)))
    deps = {n: sorted(draw(st.sets(st.integers(1, n - 1), max_size=2))) for n in range(2, count + 1)}
    return plan_of(*(f"Describe the river {name}." for name in NAMES[:count]), deps=deps)


texts = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), max_size=80)


@given(
    plan=plans(),
    said=st.lists(texts, min_size=len(NAMES), max_size=len(NAMES)),
    sizes=st.lists(st.integers(1, 400), min_size=1),
    width=st.integers(1, 5),
)
async def test_merged_text_is_the_sections_in_prompt_order(
    plan: Plan, said: list[list[str]], sizes: list[int], width: int
) -> None:
    parts = [plan.text(task) for task in plan.subtasks]
    upstream = ScriptedUpstream(dict(zip(parts, said, strict=False)), rechunked=rechunking(sizes))
    body = {"messages": [{"role": "user", "content": plan.prompt}]}
    pieces: list[Piece] = []

    async def emit(piece: Piece) -> None:
        pieces.append(piece)

    fanout = Fanout(upstream, UpstreamRequest("POST", b"/", ()), body, plan, width)
    ending = await asyncio.wait_for(fanout.run(emit), 5)
    sections = ["".join(words).strip() for words in said[: len(parts)]]
    assert "".join(piece.text for piece in pieces) == "\n\n".join(section for section in sections if section)
    assert ending.usage["completion_tokens"] == sum(len(words) for words in said[: len(parts)])
    assert sorted(upstream.opened) == sorted(parts)


@given(
    plan=plans(),
    lengths=st.lists(st.integers(1, 90), min_size=len(NAMES), max_size=len(NAMES)),
    breaks=st.lists(st.tuples(st.integers(0, 120), st.integers(0, 120)), min_size=len(NAMES), max_size=len(NAMES)),
    width=st.integers(1, 5),
)
async def test_faults_drop_repeat_and_reorder_nothing(
    plan: Plan, lengths: list[int], breaks: list[tuple[int, int]], width: int
) -> None:
    parts = [plan.text(task) for task in plan.subtasks]
    words = [[f"{part[-5:-1]}{n} " for n in range(length)] for part, length in zip(parts, lengths, strict=False)]
    scripts = {
        part: [broken(said, at) for at in attempts] for part, said, attempts in zip(parts, words, breaks, strict=False)
    }
    upstream = ScriptedUpstream(scripts)
    whole = "\n\n".join("".join(said).strip() for said in words)
    body = {"messages": [{"role": "user", "content": plan.prompt}]}
    out: list[str] = []

    async def emit(piece: Piece) -> None:
        out.append(piece.text)

    failed: FanoutFailed | None = None
    try:
        await asyncio.wait_for(Fanout(upstream, UpstreamRequest("POST", b"/", ()), body, plan, width).run(emit), 5)
    except FanoutFailed as failure:
        failed = failure
    assert whole.startswith("".join(out))
    assert failed.sent == bool(out) if failed else "".join(out) == whole
    assert sorted(upstream.closed) == sorted(upstream.opened)
    assert all(upstream.opened.count(part) <= 2 for part in parts)


def broken(said: list[str], at: int) -> Script:
    """A script that breaks off after so many words, or not at all if there are fewer."""
    return [*said[:at], Broken()] if at < len(said) else said
