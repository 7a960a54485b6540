"""The whole way: official OpenAI client, router, real decomposer, bundled engine; only the sockets are missing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import httpx
import openai
import pytest
from starlette.applications import Starlette

from decomp_router.config import Settings
from decomp_router.decompose.decomposer import load
from decomp_router.proxy.app import create_app
from decomp_router.proxy.httpx_upstream import HttpxUpstream
from pascal_engine.engine import Engine
from pascal_engine.server import create_app as create_engine_app
from tests.decomp_router.fakes import openai_client
from tests.engine.harness import DATA, open_tiny

THREE_TASKS = (
    "1. Explain in detail how the tides work.\n"
    "2. What is a vaccine?\n"
    "3. Describe step by step how a refrigerator keeps food cold."
)
TOKENS = 680
"""Enough for what the three parts promise, so that the gate does not mind."""
CHAIN = "Write a short story about a fox who learns to swim, then give that story a title."


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    engine = open_tiny(DATA / "qwen35-tiny.gguf", parallel=4, ctx=1024)
    engine.worker.start()
    yield engine
    engine.worker.stop()


@pytest.fixture
def router(engine: Engine) -> Starlette:
    transport = httpx.ASGITransport(create_engine_app(engine))
    upstream = HttpxUpstream(transport, "http://engine", httpx.Timeout(60))
    return create_app(Settings(upstream="http://engine", fanout="auto"), load(), upstream)


@pytest.fixture
async def client(router: Starlette) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai_client(router) as client:
        yield client


async def last_decision(router: Starlette) -> dict[str, object]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(router), base_url="http://router") as http:
        decision: dict[str, object] = (await http.get("/router/decisions")).json()["decisions"][0]
        return decision


@pytest.mark.parametrize(("prompt", "mode", "branches"), [(THREE_TASKS, "fanout", 3), (CHAIN, "linear", 0)])
@pytest.mark.parametrize("stream", [False, True])
async def test_the_official_client_through_router_and_engine(
    client: openai.AsyncOpenAI, router: Starlette, prompt: str, mode: str, branches: int, stream: bool
) -> None:
    asked = {
        "model": "m",
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": TOKENS,
        "temperature": 0,
        "extra_body": {"ignore_eos": True},
    }
    if stream:
        options = {"stream": True, "stream_options": {"include_usage": True}}
        chunks = [chunk async for chunk in await client.chat.completions.create(**asked, **options)]
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        ends = [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices]
        assert ends[-1] == "length"
        assert not any(ends[:-1])
        assert len({chunk.id for chunk in chunks}) == 1
        usage = chunks[-1].usage
    else:
        answer = await client.chat.completions.create(**asked)
        text, usage = answer.choices[0].message.content, answer.usage
    assert text
    assert usage is not None
    assert usage.completion_tokens >= TOKENS
    decision = await last_decision(router)
    assert (decision["mode"], len(list(decision["branches"]))) == (mode, branches)  # type: ignore[call-overload]
