"""POST /v1/chat/completions when it fans out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decomp_router.decompose.reading import Reading
from decomp_router.proxy.app import create_app
from tests.decomp_router.fakes import (
    LINEAR,
    Broken,
    Exchange,
    FixedReader,
    ScriptedUpstream,
    Thought,
    openai_client,
    plan_of,
    rechunking,
    settle,
)
from tests.decomp_router.proxy.scripted_engine import PARTS, PLAN, client_of, fanning_out, settings

A, B, C = PARTS
ANSWERS = {A: ["Ri", "ver."], B: ["Tides\u2028", "\u0085."], C: ["Lights."], LINEAR: ["All ", "at once."]}
MERGED = "River.\n\nTides\u2028\u0085.\n\nLights."
ROUTE = b"/v1/chat/completions"


def asked(**fields: object) -> dict[str, Any]:
    return {"model": "tiny", "messages": [{"role": "user", "content": PLAN.prompt}], **fields}


def raw(**fields: object) -> bytes:
    return json.dumps(asked(**fields)).encode()


async def test_the_official_client_gets_one_answer() -> None:
    async with openai_client(fanning_out(ScriptedUpstream(ANSWERS))) as client:
        answer = await client.chat.completions.create(**asked())
    assert answer.choices[0].message.content == MERGED
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].finish_reason == "stop"
    assert (answer.id, answer.created, answer.model) == ("chatcmpl-1", 7, "tiny")
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (30, 5, 35)


async def test_the_official_client_gets_one_stream() -> None:
    async with openai_client(fanning_out(ScriptedUpstream(ANSWERS))) as client:
        stream = await client.chat.completions.create(**asked(stream=True, stream_options={"include_usage": True}))
        chunks = [chunk async for chunk in stream]
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert "".join(delta.content or "" for delta in deltas) == MERGED
    assert [delta.role for delta in deltas if delta.role] == ["assistant"]
    assert [c.choices[0].finish_reason for c in chunks if c.choices and c.choices[0].finish_reason] == ["stop"]
    assert {chunk.id for chunk in chunks} == {"chatcmpl-1"}
    assert [chunk.usage.completion_tokens for chunk in chunks if chunk.usage] == [5]
    assert not chunks[-1].choices


async def test_a_linear_request_reaches_the_official_client_as_the_engine_sent_it() -> None:
    app = fanning_out(ScriptedUpstream(ANSWERS), plan_of("Describe the river Ebro."))
    async with openai_client(app) as client:
        stream = await client.chat.completions.create(**asked(stream=True))
        chunks = [chunk async for chunk in stream]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "All at once."


async def test_headers_tell_that_a_response_was_fanned_out() -> None:
    async with client_of(fanning_out(ScriptedUpstream(ANSWERS))) as client:
        for stream in (False, True):
            answer = await client.post("/v1/chat/completions", json=asked(stream=stream))
            assert answer.headers["x-decomp-decision"] == "fanout"
            assert answer.headers["x-decomp-width"] == "3"
            assert answer.headers["x-accel-buffering"] == "no"


async def test_usage_comes_only_if_it_is_wanted() -> None:
    async with client_of(fanning_out(ScriptedUpstream(ANSWERS))) as client:
        answer = await client.post("/v1/chat/completions", json=asked(stream=True))
    assert b'"usage"' not in answer.content
    assert answer.content.endswith(b"data: [DONE]\n\n")


@given(
    said=st.lists(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=5)), min_size=3, max_size=3),
    sizes=st.lists(st.integers(1, 300), min_size=1),
    thought=st.booleans(),
)
async def test_stream_and_object_say_the_same(said: list[list[str]], sizes: list[int], thought: bool) -> None:
    scripts = {part: [*([Thought("hm ")] * thought), *words] for part, words in zip(PARTS, said, strict=True)}
    app = fanning_out(ScriptedUpstream(scripts, rechunked=rechunking(sizes)))
    async with client_of(app) as client:
        whole = (await client.post("/v1/chat/completions", json=asked())).json()
        stream = await client.post(
            "/v1/chat/completions", json=asked(stream=True, stream_options={"include_usage": True})
        )
    frames = [json.loads(frame[6:]) for frame in stream.content.split(b"\n\n")[:-2]]
    deltas = [frame["choices"][0]["delta"] for frame in frames if frame["choices"]]
    message = whole["choices"][0]["message"]
    for name in ("content", "reasoning_content"):
        assert "".join(delta.get(name) or "" for delta in deltas) == message.get(name, "")
    assert frames[-1]["usage"] == whole["usage"]
    assert frames[-2]["choices"][0]["finish_reason"] == whole["choices"][0]["finish_reason"]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_fan_out_that_fails_before_its_first_word_runs_linearly(stream: bool) -> None:
    upstream = ScriptedUpstream({**ANSWERS, A: [asyncio.Event()], B: [[Broken()], [Broken()]]})
    app = fanning_out(upstream)
    async with client_of(app) as client:
        answer = await client.post("/v1/chat/completions", content=raw(stream=stream))
        decisions = (await client.get("/router/decisions")).json()["decisions"]
    assert "x-decomp-decision" not in answer.headers
    assert upstream.bodies[-1] == asked(stream=stream)
    assert b"All " in answer.content
    assert decisions[0]["outcome"].startswith("ran linearly instead: The upstream")


async def test_a_fan_out_that_fails_later_ends_with_an_error_event() -> None:
    words = [f"w{number} " for number in range(64)]
    rest = asyncio.Event()
    app = fanning_out(ScriptedUpstream({**ANSWERS, A: [[*words, rest, Broken()]]}))
    exchange = Exchange(app, "POST", ROUTE, raw(stream=True))
    assert (await exchange.message())["status"] == 200
    first = await exchange.message()
    rest.set()
    body = first["body"] + await rest_of(exchange)
    *_, last = [frame for frame in body.split(b"\n\n") if frame]
    assert json.loads(last.removeprefix(b"data: "))["error"]["message"] == "The upstream broke off."
    assert b"[DONE]" not in body


async def test_without_a_stream_a_late_failure_runs_linearly_too() -> None:
    words = [f"w{number} " for number in range(64)]
    upstream = ScriptedUpstream({**ANSWERS, A: [[*words, Broken()], [Broken()]]})
    async with client_of(fanning_out(upstream)) as client:
        answer = await client.post("/v1/chat/completions", json=asked())
    assert answer.status_code == 200
    assert upstream.opened[-1] == LINEAR


async def rest_of(exchange: Exchange) -> bytes:
    body, more = b"", True
    while more:
        message = await exchange.message()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    await exchange.over()
    return body


class Bell:
    """A sleep that ends when the test rings."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self._rings: asyncio.Queue[None] = asyncio.Queue()

    async def __call__(self, seconds: float) -> None:
        self.asked.append(seconds)
        await self._rings.get()

    def ring(self) -> None:
        self._rings.put_nowait(None)


async def test_comments_keep_a_silent_stream_alive() -> None:
    bell, start = Bell(), asyncio.Event()
    app = fanning_out(ScriptedUpstream({**ANSWERS, A: [start, "River."]}), sleep=bell)
    exchange = Exchange(app, "POST", ROUTE, raw(stream=True))
    bell.ring()
    assert (await exchange.message())["headers"][0] == (b"content-type", b"text/event-stream")
    assert (await exchange.message())["body"] == b": keep-alive\n\n"
    assert 2 * bell.asked[0] <= 15
    start.set()
    assert b"River." in await rest_of(exchange)


@pytest.mark.parametrize("script", [["All ", "at once."], [Broken()]])
async def test_a_stream_that_is_open_takes_the_linear_answer(script: list[Any]) -> None:
    bell, start = Bell(), asyncio.Event()
    failing = [[start, Broken()], [Broken()]]
    app = fanning_out(ScriptedUpstream({**ANSWERS, A: failing, LINEAR: script}), sleep=bell)
    exchange = Exchange(app, "POST", ROUTE, raw(stream=True))
    bell.ring()
    await exchange.message()
    await exchange.message()
    start.set()
    body = await rest_of(exchange)
    assert (b"at once." in body) != (b'"error"' in body)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("begun", [False, True])
async def test_a_client_that_leaves_cancels_every_branch(stream: bool, begun: bool) -> None:
    never = asyncio.Event()
    words = [f"w{number} " for number in range(64)] if begun else []
    upstream = ScriptedUpstream({A: [*words, never], B: [never], C: [never]})
    exchange = Exchange(fanning_out(upstream), "POST", ROUTE, raw(stream=stream))
    for _ in PARTS:
        await asyncio.wait_for(upstream.arrivals.get(), 5)
    if begun and stream:
        await exchange.message()
        await exchange.message()
    await settle()
    exchange.leave()
    await asyncio.wait_for(exchange.over(), 1)
    assert sorted(upstream.closed) == sorted(PARTS)


async def test_a_crowded_engine_is_not_even_asked_for_a_plan() -> None:
    upstream = ScriptedUpstream(ANSWERS, slots=1)
    app = fanning_out(upstream)
    async with client_of(app) as client:
        answer = await client.post("/v1/chat/completions", json=asked(stream=True))
        record = (await client.get("/router/decisions")).json()["decisions"][0]
    assert b"at once." in answer.content
    assert record["reasons"] == ["1 slot idle"]
    assert upstream.opened == [LINEAR]


async def test_decisions_are_recorded_without_the_prompt() -> None:
    async with client_of(fanning_out(ScriptedUpstream(ANSWERS))) as client:
        await client.post("/v1/chat/completions", json=asked())
        answer = await client.get("/router/decisions")
        record = answer.json()["decisions"][0]
        health = (await client.get("/router/health")).json()
    assert (record["mode"], record["width"], record["subtasks"], record["outcome"]) == ("fanout", 3, 3, "done")
    assert record["reasons"] == ["as scripted", "3 at a time, 4 slots idle"]
    assert [branch["tokens"] for branch in record["branches"]] == [2, 2, 1]
    assert "Ebro" not in answer.text
    assert health == {"status": "ok", "upstream": "http://engine:8080", "fanout": "auto", "in_flight": 0}


async def test_the_clients_key_and_path_reach_the_branches() -> None:
    seen: list[tuple[bytes, dict[bytes, bytes]]] = []

    class Watching(ScriptedUpstream):
        def stream(self, request: Any) -> Any:  # noqa: ANN401
            if request.method == "POST":
                seen.append((request.target, dict(request.headers)))
            return super().stream(request)

    async with client_of(fanning_out(Watching(ANSWERS))) as client:
        await client.post("/v1/chat/completions?a=b", json=asked(), headers={"Authorization": "Bearer k"})
    assert len(seen) == 3
    for target, headers in seen:
        assert target == b"/v1/chat/completions?a=b"
        assert headers[b"authorization"] == b"Bearer k"
        assert headers[b"content-type"] == b"application/json"
        assert b"content-length" not in headers
        assert b"accept-encoding" not in headers


async def test_a_decomposer_that_fails_costs_nothing_but_the_fan_out(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(FixedReader):
        def read(self, prompt: str, context: Sequence[tuple[str, str]] = ()) -> Reading:
            raise RuntimeError("no memory")

    app = create_app(settings(fanout="auto"), Failing(PLAN), ScriptedUpstream(ANSWERS))
    async with client_of(app) as client:
        answer = await client.post("/v1/chat/completions", json=asked(stream=True))
    assert b"at once." in answer.content
    assert "no memory" in caplog.text
