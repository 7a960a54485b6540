"""The Anthropic Messages API: the official client unchanged, the stream's sequence, what is refused."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import httpx2
import jsonschema
import pytest
from anthropic import AsyncAnthropic, AuthenticationError, BadRequestError, OverloadedError

from pascal_engine.engine import Engine
from pascal_engine.errors import QueueFullError
from pascal_engine.schedule.scheduler import Scheduler
from pascal_engine.server import create_app
from pascal_engine.server.anthropic.schema import CountTokensBody
from pascal_engine.server.anthropic.translate import chat_body
from pascal_engine.server.options import ServerOptions
from tests.engine.harness import Json
from tests.engine.speaking import Say, make_say

HELLO: list[Any] = [{"role": "user", "content": "Hello"}]
SHORT: Json = {"model": "any", "max_tokens": 200}
GREEDY: Json = {"model": "any", "max_tokens": 8, "extra_body": {"temperature": 0}}
WEATHER: Json = {
    "name": "weather",
    "description": "The weather",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Köln"}}\n</tool_call>'


@pytest.fixture
def say(large: Engine, monkeypatch: pytest.MonkeyPatch) -> Say:
    return make_say(large, monkeypatch)


@pytest.fixture
async def http(large: Engine) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(create_app(large), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://engine", timeout=30) as client:
        yield client


@pytest.fixture
async def official(large: Engine) -> AsyncIterator[AsyncAnthropic]:
    transport = httpx2.ASGITransport(create_app(large), raise_app_exceptions=False)
    http = httpx2.AsyncClient(transport=transport, base_url="http://engine", timeout=30)
    async with AsyncAnthropic(base_url="http://engine", api_key="none", http_client=http, max_retries=0) as official:
        yield official


def sent_events(response: httpx.Response) -> list[tuple[str, Json]]:
    """Names and data of a stream's events."""
    blocks = [block.split("\n") for block in response.text.strip().split("\n\n")]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in blocks]


async def test_official_client_chats(official: AsyncAnthropic) -> None:
    message = await official.messages.create(**GREEDY, messages=HELLO, system="Be brief.")
    assert (message.type, message.role, message.model) == ("message", "assistant", "any")
    assert message.stop_reason == "max_tokens"
    assert message.usage.output_tokens == 8
    assert message.content[0].type == "text"
    async with official.messages.stream(**GREEDY, messages=HELLO, system="Be brief.") as stream:
        streamed = await stream.get_final_message()
    assert streamed.content[0].model_dump(include={"type", "text"}) == {"type": "text", "text": message.content[0].text}
    assert (streamed.stop_reason, streamed.usage.output_tokens) == ("max_tokens", 8)


async def test_official_client_calls_tools(official: AsyncAnthropic, say: Say) -> None:
    say(f"<think>\nThey ask for weather.\n</think>\n\nLet me look.\n{CALL}")
    asked = {**SHORT, "messages": HELLO, "tools": [WEATHER]}
    message = await official.messages.create(**asked)
    assert message.stop_reason == "tool_use"
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]
    assert message.content[0].thinking == "They ask for weather."
    assert message.content[1].text == "Let me look."
    call = message.content[2]
    assert (call.name, call.input) == ("weather", {"city": "Köln"})
    async with official.messages.stream(**asked) as stream:
        streamed = await stream.get_final_message()
    for one, other in zip(streamed.content, message.content, strict=True):
        assert one.model_dump(exclude={"id", "parsed_output"}) == other.model_dump(exclude={"id"})
    say("It is sunny.")
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": "sunny"}]}]
    turns = [*HELLO, {"role": "assistant", "content": message.content}, {"role": "user", "content": results}]
    answer = await official.messages.create(**{**asked, "messages": turns})
    assert (answer.content[0].text, answer.stop_reason) == ("It is sunny.", "end_turn")


PLACE: Json = {
    "type": "object",
    "properties": {"city": {"enum": ["Köln", "Paris"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
    "required": ["city", "days"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("choice", [{"type": "any"}, {"type": "tool", "name": "weather"}])
async def test_a_model_that_knows_no_tools_is_held_to_calling_one(choice: Json, official: AsyncAnthropic) -> None:
    tools: list[Any] = [{"name": "weather", "input_schema": PLACE}]
    asked: Json = {
        **SHORT,
        "messages": HELLO,
        "tools": tools,
        "tool_choice": {**choice, "disable_parallel_tool_use": True},
    }
    message = await official.messages.create(**asked, thinking={"type": "disabled"})
    assert message.stop_reason == "tool_use"
    call = message.content[-1]
    assert call.name == "weather"
    jsonschema.validate(call.input, PLACE)


async def test_a_model_that_knows_no_schema_is_held_to_one(official: AsyncAnthropic) -> None:
    form: Any = {"type": "json_schema", "schema": PLACE}
    message = await official.messages.create(
        **SHORT, messages=HELLO, output_config={"format": form}, thinking={"type": "disabled"}
    )
    assert message.stop_reason == "end_turn"
    jsonschema.validate(json.loads(message.content[0].text), PLACE)


async def test_the_sequence_of_a_stream(http: httpx.AsyncClient, say: Say) -> None:
    say(f"<think>Hm.</think>Well.{CALL}")
    asked = {**SHORT, "messages": HELLO, "tools": [WEATHER], "stream": True}
    events = sent_events(await http.post("/v1/messages", json=asked))
    assert all(data["type"] == name for name, data in events)
    sequence = [(name, data["delta"]["type"]) if "content_block_delta" in name else name for name, data in events]
    once = [step for at, step in enumerate(sequence) if at == 0 or sequence[at - 1] != step]
    assert once == [
        "message_start",
        "content_block_start",
        "ping",
        ("content_block_delta", "thinking_delta"),
        ("content_block_delta", "signature_delta"),
        "content_block_stop",
        "content_block_start",
        ("content_block_delta", "text_delta"),
        "content_block_stop",
        "content_block_start",
        ("content_block_delta", "input_json_delta"),
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    starts = [data for name, data in events if name == "content_block_start"]
    assert [(data["index"], data["content_block"]["type"]) for data in starts] == [
        (0, "thinking"),
        (1, "text"),
        (2, "tool_use"),
    ]
    message, delta = events[0][1]["message"], events[-2][1]
    assert message["content"] == []
    assert message["stop_reason"] is None
    assert delta["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}
    total = message["usage"]["input_tokens"]
    assert delta["usage"]["input_tokens"] + delta["usage"]["cache_read_input_tokens"] == total


async def test_stop_sequences_and_cached_tokens(official: AsyncAnthropic, say: Say) -> None:
    say("one two three")
    asked = {**SHORT, "messages": [{"role": "user", "content": "List three cities in France. " * 8}]}
    message = await official.messages.create(**asked, stop_sequences=[" three"])
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", " three")
    assert message.content[0].text == "one two"
    again = await official.messages.create(**asked)
    assert again.stop_sequence is None
    n_prompt = message.usage.input_tokens + (message.usage.cache_read_input_tokens or 0)
    assert again.usage.input_tokens + again.usage.cache_read_input_tokens == n_prompt
    assert again.usage.cache_read_input_tokens > n_prompt * 0.9


async def test_an_answer_cut_short_in_a_call_has_its_beginning_alone(http: httpx.AsyncClient, say: Say) -> None:
    say(CALL)
    asked = {**SHORT, "messages": HELLO, "tools": [WEATHER], "max_tokens": 45}
    answer = (await http.post("/v1/messages", json=asked)).json()
    assert answer["stop_reason"] == "max_tokens"
    assert all(block["input"] == {} for block in answer["content"] if block["type"] == "tool_use")


async def test_thinking_is_a_variable_of_the_template(official: AsyncAnthropic, say: Say) -> None:
    say("Yes.")
    asked = {**SHORT, "messages": HELLO}
    free = await official.messages.count_tokens(model="any", messages=HELLO)
    off = await official.messages.count_tokens(model="any", messages=HELLO, thinking={"type": "disabled"})
    assert off.input_tokens > free.input_tokens
    message = await official.messages.create(**asked, thinking={"type": "disabled"})
    assert message.usage.input_tokens + message.usage.cache_read_input_tokens == off.input_tokens
    assert (await official.messages.create(**asked, thinking={"type": "enabled", "budget_tokens": 1024})).content


def translated(**fields: object) -> Json:
    body = chat_body(CountTokensBody.model_validate({"messages": HELLO, **fields}), hygiene=True)
    return body.model_dump(exclude_unset=True)


def test_turns_of_every_kind_are_translated() -> None:
    turns = [
        *HELLO,
        {"role": "user", "content": [{"type": "text", "text": "Weather?", "cache_control": {"type": "ephemeral"}}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "abc"},
                {"type": "redacted_thinking", "data": "abc"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "a", "name": "weather", "input": {"city": "Köln"}},
                {"type": "tool_use", "id": "b", "name": "weather", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "sunny"},
                {"type": "tool_result", "tool_use_id": "b", "is_error": True},
                {"type": "text", "text": "And?"},
            ],
        },
    ]
    texts = ("x-session-id: 0b5e2c2e-33b8\n", "Be brief.", "\nBe kind.")
    blocks = [{"type": "text", "text": text} for text in texts]
    system, asked, called, *results = translated(messages=turns, system=blocks, tools=[WEATHER])["messages"]
    assert system == {"role": "system", "content": "Be brief.\nBe kind."}
    assert [part["text"] for part in asked["content"]] == ["Hello", "Weather?"]
    assert (called["content"], called["reasoning_content"]) == ([{"type": "text", "text": "I look."}], "Hm.")
    functions = [call["function"] for call in called["tool_calls"]]
    assert functions[0] == {"name": "weather", "arguments": '{"city": "Köln"}'}
    assert [(result["role"], result.get("tool_call_id")) for result in results] == [
        ("tool", "a"),
        ("tool", "b"),
        ("user", None),
    ]
    assert results[1]["is_error"] is True


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"type": "auto"}, "auto"),
        ({"type": "any"}, "required"),
        ({"type": "none"}, "none"),
        ({"type": "tool", "name": "weather"}, {"type": "function", "function": {"name": "weather"}}),
    ],
)
def test_tool_choice_is_translated(given: Json, expected: object) -> None:
    assert translated(tools=[WEATHER], tool_choice=given)["tool_choice"] == expected
    several = translated(tools=[WEATHER], tool_choice={**given, "disable_parallel_tool_use": True})
    assert several["parallel_tool_calls"] is False


IMAGE: Json = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"messages": []}, "'messages' is wrong"),
        ({"messages": [{"role": "tool", "content": "a"}]}, "'messages.0.role' is wrong"),
        ({"messages": [{"role": "user", "content": []}]}, "has no content"),
        ({"messages": [{"role": "user", "content": [IMAGE]}]}, "content of type 'image' is not supported"),
        ({"messages": [{"role": "user", "content": [{"type": "tool_use", "id": "a"}]}]}, "type 'tool_use'"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "a block of type 'text'"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "web_search_20250305"),
        ({"tools": [{"name": "weather"}]}, "'input_schema'"),
        ({"tools": [WEATHER], "tool_choice": {"type": "tool"}}, "must have a 'name'"),
        ({"tool_choice": {"type": "any"}}, "there are no 'tools'"),
        ({"output_config": {"format": {"type": "regex"}}}, "'output_config.format'"),
        ({"mcp_servers": [{}]}, "'mcp_servers' is not supported"),
        ({"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}}, "'context_management'"),
    ],
)
async def test_what_cannot_be_answered_is_an_error_in_anthropics_shape(
    change: Json, part: str, http: httpx.AsyncClient
) -> None:
    answer = await http.post("/v1/messages", json={**SHORT, "messages": HELLO, **change})
    assert answer.status_code == 400
    content = answer.json()
    assert content["type"] == "error"
    assert content["error"]["type"] == "invalid_request_error"
    assert part in content["error"]["message"]


async def test_official_client_raises_its_own_errors(official: AsyncAnthropic, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadRequestError, match="not supported"):
        await official.messages.create(**SHORT, messages=[{"role": "user", "content": [IMAGE]}])

    def full(*arguments: object) -> None:
        raise QueueFullError("256 requests wait for a slot already; try again later")

    monkeypatch.setattr(Scheduler, "submit", full)
    with pytest.raises(OverloadedError, match="try again later"):
        await official.messages.create(**SHORT, messages=HELLO)


async def test_official_client_brings_its_key(large: Engine) -> None:
    transport = httpx2.ASGITransport(create_app(large, ServerOptions(api_keys=("secret",))))
    async with httpx2.AsyncClient(transport=transport, base_url="http://engine") as http:
        asked = {"model": "any", "messages": HELLO}
        known = AsyncAnthropic(base_url="http://engine", api_key="secret", http_client=http, max_retries=0)
        assert (await known.messages.count_tokens(**asked)).input_tokens
        with pytest.raises(AuthenticationError) as caught:
            await known.with_options(api_key="wrong").messages.count_tokens(**asked)
    assert caught.value.body == {
        "type": "error",
        "error": {"type": "authentication_error", "message": "Invalid API Key"},
    }


async def test_a_client_that_goes_away_frees_its_slot(large: Engine, say: Say) -> None:
    say("one two three " * 200)
    inbox: asyncio.Queue[Json] = asyncio.Queue()
    sent: asyncio.Queue[Json] = asyncio.Queue()
    body = json.dumps({**SHORT, "max_tokens": 600, "messages": HELLO, "stream": True}).encode()
    await inbox.put({"type": "http.request", "body": body})
    scope = {"type": "http", "method": "POST", "path": "/v1/messages", "headers": [], "query_string": b""}
    call = asyncio.ensure_future(create_app(large)(scope, inbox.get, sent.put))
    while b"content_block_delta" not in (await sent.get()).get("body", b""):
        pass
    (slot,) = [slot for slot in large.scheduler.slots if slot.sequence is not None]
    running = slot.sequence
    await inbox.put({"type": "http.disconnect"})
    await call
    assert running is not None
    assert running.cancelled
    assert len(running.generated) < 600


async def test_a_failure_in_mid_stream_is_an_error_event(
    http: httpx.AsyncClient, large: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(type(large.model), "forward", lambda *arguments: 1 / 0)
    asked = {**SHORT, "messages": HELLO}
    events = sent_events(await http.post("/v1/messages", json={**asked, "stream": True}))
    assert [name for name, _ in events] == ["message_start", "error"]
    assert events[-1][1]["error"]["type"] == "api_error"
    assert (await http.post("/v1/messages", json=asked)).json() == events[-1][1]
