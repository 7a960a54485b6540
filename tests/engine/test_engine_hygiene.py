"""Prefix hygiene: what is dropped, that a text which only resembles it is kept, and what the prefix cache gains."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count

import httpx
import pytest

from pascal_engine.engine import Engine
from pascal_engine.server import create_app
from pascal_engine.server.hygiene import PrefixHygiene, without_volatile_headers
from pascal_engine.server.options import ServerOptions
from tests.engine.harness import Json

PROSE = "You are a careful engineer.\nx-session-id: 0b5e2c2e-1111\nAnswer briefly."


@pytest.mark.parametrize(
    "headers",
    [
        "x-anthropic-billing-header: cc_version=2.1.101.e51; cc_entrypoint=cli; cch=a5145;\n",
        "x-anthropic-billing-header: cc_version=2.1.101.e51; cc_entrypoint=cli; cch=a5145;",
        "x-anthropic-billing-header: cc_version=2.1.101.e51; cch=a5145\n",
        "X-Anthropic-Billing-Header: cch=00000;\r\n",
        "x-session-id: 0b5e2c2e-33b8-4a5e-9d0a-8a5e4fb0a001\n",
        "x-claude-code-session-id: 0b5e2c2e-33b8-4a5e-9d0a-8a5e4fb0a001\n",
        "X-Request-Id:req_011CSHoEeqs5C35K2UUqR7Fy\n",
        "x-conversation-id: 1234567890\nx-trace-id: 9f86d081884c7d65\nx-nonce: q1w2e3r4t5==\n",
        "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\n",
        "x-timestamp: 2026-01-31T12:00:00.123Z\nx-request-timestamp: 1769860800\n",
        "x-anthropic-billing-header: cch=a5145;\nx-session-id: 0b5e2c2e-33b8 \n",
    ],
)
def test_header_lines_are_dropped_and_nothing_else(headers: str) -> None:
    assert without_volatile_headers(headers + PROSE) == PROSE
    assert without_volatile_headers(headers) == ""


@pytest.mark.parametrize(
    "text",
    [
        "",
        PROSE,
        " x-session-id: 0b5e2c2e-33b8-4a5e\n",
        "x-anthropic-billing-header: is a line that agents send.",
        "x-anthropic-billing-header:\n",
        "x-anthropic-billing-header: cch=a5145 tells who pays.",
        "x-session-id: 0b5e2c2e-33b8-4a5e is the header to look for.",
        "x-session-id: mandatory\n",
        "x-session-id: 5\n",
        "x-session-id of 0b5e2c2e-33b8-4a5e\n",
        "session-id: 0b5e2c2e-33b8-4a5e\n",
        "x-timestamp: 2026-01-31\n",
        "x-timestamp: 1769860800 is when the ship sailed.",
        "Timestamp: 2026-01-31T12:00:00Z\n",
        "Today's date: 2026-01-31\n",
        "x-api-version: 2026013112\n",
    ],
)
def test_what_only_resembles_a_header_is_kept(text: str) -> None:
    assert without_volatile_headers(text) == text


def test_a_hostile_text_takes_no_time() -> None:
    billing = "x-anthropic-billing-header:"
    for hostile in (billing + " a=" * 300_000, billing + " " * 900_000 + "!", "x-nonce: " + "1" * 900_000 + "!"):
        assert without_volatile_headers(hostile) == hostile
    assert without_volatile_headers(billing + "a=b;" * 200_000 + "a=b c") == "a=b c"


SYSTEM = "The quick brown fox jumps over the lazy dog, and the dog says nothing. " * 20
SECRETS = count(10_000)
"""No two requests of all tests have the same header line."""

Connect = Callable[[PrefixHygiene], AbstractAsyncContextManager[httpx.AsyncClient]]


@pytest.fixture
def connect(large: Engine) -> Connect:
    """connect(hygiene): a client of a server started with --prefix-hygiene; the model is a tiny hybrid one."""

    @asynccontextmanager
    async def connected(hygiene: PrefixHygiene) -> AsyncIterator[httpx.AsyncClient]:
        transport = httpx.ASGITransport(create_app(large, ServerOptions(prefix_hygiene=hygiene)))
        async with httpx.AsyncClient(transport=transport, base_url="http://engine", timeout=30) as client:
            yield client

    return connected


def header() -> str:
    return f"x-anthropic-billing-header: cch={next(SECRETS)}; cc_version=2.1.101.e51;\n"


def messages(question: str) -> tuple[str, Json]:
    blocks = [{"type": "text", "text": header()}, {"type": "text", "text": SYSTEM}]
    return "/v1/messages", {"system": blocks, "messages": [{"role": "user", "content": question}], "max_tokens": 2}


def chat(question: str) -> tuple[str, Json]:
    turns = [{"role": "system", "content": header() + SYSTEM}, {"role": "user", "content": question}]
    return "/v1/chat/completions", {"messages": turns, "max_tokens": 2}


def responses(question: str) -> tuple[str, Json]:
    return "/v1/responses", {"instructions": header() + SYSTEM, "input": question, "max_output_tokens": 2}


async def reused(client: httpx.AsyncClient, path: str, body: Json) -> float:
    """The share of the prompt's tokens whose state came from the cache."""
    usage = (await client.post(path, json=body)).json()["usage"]
    if path == "/v1/messages":
        return float(usage["cache_read_input_tokens"] / (usage["cache_read_input_tokens"] + usage["input_tokens"]))
    total = usage["prompt_tokens"] if "prompt_tokens" in usage else usage["input_tokens"]
    details = usage.get("prompt_tokens_details") or usage["input_tokens_details"]
    return float(details["cached_tokens"] / total)


@pytest.mark.parametrize(
    ("hygiene", "ask", "cleans"),
    [
        ("anthropic", messages, True),
        ("all", messages, True),
        ("off", messages, False),
        ("anthropic", chat, False),
        ("all", chat, True),
        ("anthropic", responses, False),
        ("all", responses, True),
    ],
)
async def test_requests_that_differ_only_in_a_header_line_share_their_state(
    hygiene: PrefixHygiene, ask: Callable[[str], tuple[str, Json]], cleans: bool, connect: Connect
) -> None:
    question = f"Which {hygiene} {ask.__name__}?"
    async with connect(hygiene) as client:
        await reused(client, *ask(question))
        again, other = await reused(client, *ask(question)), await reused(client, *ask("And why?"))
    if cleans:
        assert again >= 0.95
        assert other >= 0.95
    else:
        assert max(again, other) < 0.1


async def test_counted_tokens_are_those_of_the_cleaned_prompt(connect: Connect) -> None:
    path, body = messages("Why?")
    del body["max_tokens"]
    counts = {}
    for hygiene in ("anthropic", "off"):
        async with connect(hygiene) as client:
            counts[hygiene] = (await client.post(f"{path}/count_tokens", json=body)).json()["input_tokens"]
    assert counts["anthropic"] < counts["off"]


async def test_a_system_prompt_of_nothing_but_headers_is_none(connect: Connect) -> None:
    turns = [{"role": "user", "content": "Why?"}]
    async with connect("anthropic") as client:
        path = "/v1/messages/count_tokens"
        alone = (await client.post(path, json={"messages": turns})).json()
        assert (await client.post(path, json={"messages": turns, "system": header()})).json() == alone
