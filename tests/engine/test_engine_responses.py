"""The OpenAI Responses API: the official client unchanged, the stream's sequence, what is refused."""

import json
from collections.abc import AsyncIterator

import httpx
import pytest
from openai import AsyncOpenAI, BadRequestError

from pascal_engine.engine import Engine
from pascal_engine.server import create_app
from pascal_engine.server.responses.schema import InputTokensBody
from pascal_engine.server.responses.translate import chat_body
from tests.engine.harness import Json
from tests.engine.speaking import Say, make_say

WEATHER: Json = {
    "type": "function",
    "name": "weather",
    "description": "The weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "strict": True,
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
async def official(http: httpx.AsyncClient) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url="http://engine/v1", api_key="none", http_client=http, max_retries=0) as official:
        yield official


async def test_official_client_gets_text(official: AsyncOpenAI, say: Say) -> None:
    say("It is sunny.")
    answer = await official.responses.create(model="any", input="Hello", instructions="Be brief.")
    assert (answer.output_text, answer.status, answer.error) == ("It is sunny.", "completed", None)
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.input_tokens + answer.usage.output_tokens
    counted = await official.responses.input_tokens.count(model="any", input="Hello", instructions="Be brief.")
    assert counted.input_tokens == answer.usage.input_tokens
    again = await official.responses.create(model="any", input="Hello", instructions="Be brief.")
    assert again.usage is not None
    assert again.usage.input_tokens_details.cached_tokens > 0


async def test_an_answer_cut_short_is_incomplete(official: AsyncOpenAI, say: Say) -> None:
    say("It is sunny.")
    answer = await official.responses.create(model="any", input="Hello", max_output_tokens=3)
    assert answer.status == "incomplete"
    assert answer.incomplete_details is not None
    assert answer.incomplete_details.reason == "max_output_tokens"
    assert answer.output[0].status == "incomplete"
    names = [
        event.type
        async for event in await official.responses.create(model="any", input="Hello", max_output_tokens=3, stream=True)
    ]
    assert names[-1] == "response.incomplete"


async def test_official_client_streams_reasoning_text_and_calls(official: AsyncOpenAI, say: Say) -> None:
    say(f"<think>Hm.</think>Well.{CALL}")
    asked: Json = {"model": "any", "input": "Weather?", "tools": [WEATHER], "reasoning": {"effort": "high"}}
    whole = await official.responses.create(**asked)
    assert [item.type for item in whole.output] == ["reasoning", "message", "function_call"]
    reasoning, message, call = whole.output
    assert reasoning.content[0].text == "Hm."
    assert message.content[0].text == "Well."
    assert (call.name, json.loads(call.arguments)) == ("weather", {"city": "Köln"})
    assert whole.usage is not None
    assert 0 < whole.usage.output_tokens_details.reasoning_tokens < whole.usage.output_tokens
    async with official.responses.stream(**asked) as stream:
        final = await stream.get_final_response()
    assert final.output_text == "Well."
    assert [item.type for item in final.output] == [item.type for item in whole.output]
    say("It is sunny.")
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
    items = [{"role": "user", "content": "Weather?"}, *(item.model_dump() for item in whole.output), result]
    answer = await official.responses.create(**{**asked, "input": items})
    assert answer.output_text == "It is sunny."


async def test_the_sequence_of_a_stream(http: httpx.AsyncClient, say: Say) -> None:
    say(f"<think>Hm.</think>Well.{CALL}")
    asked = {"input": "Weather?", "tools": [WEATHER], "stream": True}
    lines = (await http.post("/v1/responses", json=asked)).text.strip().split("\n\n")
    events = [json.loads(line.partition("\ndata: ")[2]) for line in lines]
    assert [line.partition("\n")[0] for line in lines] == [f"event: {event['type']}" for event in events]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    names = [event["type"].removeprefix("response.") for event in events]
    assert [name for at, name in enumerate(names) if at == 0 or names[at - 1] != name] == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "reasoning_text.delta",
        "reasoning_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert done == events[-1]["response"]["output"]
    assert events[0]["response"]["output"] == []
    assert events[0]["response"]["status"] == "in_progress"


async def test_an_answer_follows_a_schema(http: httpx.AsyncClient, say: Say) -> None:
    say('{"city": "Köln"}')
    form = {"type": "json_schema", "name": "place", "schema": WEATHER["parameters"], "strict": True}
    answer = (await http.post("/v1/responses", json={"input": "Where?", "text": {"format": form}})).json()
    assert json.loads(answer["output"][0]["content"][0]["text"]) == {"city": "Köln"}
    assert answer["text"]["format"] == form


async def test_a_model_that_knows_no_schema_is_held_to_one(official: AsyncOpenAI) -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"enum": ["Köln", "Paris"]}},
        "required": ["city"],
        "additionalProperties": False,
    }
    asked: Json = {"model": "any", "input": "Where?", "reasoning": {"effort": "none"}, "max_output_tokens": 200}
    form = {"type": "json_schema", "name": "place", "schema": schema, "strict": True}
    answer = await official.responses.create(**asked, text={"format": form})
    assert json.loads(answer.output_text)["city"] in ("Köln", "Paris")
    tool = {**WEATHER, "parameters": schema}
    called = await official.responses.create(**asked, tools=[tool], tool_choice="required", parallel_tool_calls=False)
    assert json.loads(called.output[-1].arguments)["city"] in ("Köln", "Paris")


async def test_a_failure_in_mid_stream_is_an_error_event(
    http: httpx.AsyncClient, large: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(type(large.model), "forward", lambda *arguments: 1 / 0)
    lines = (await http.post("/v1/responses", json={"input": "Hello", "stream": True})).text.strip().split("\n\n")
    assert lines[-1].startswith("event: error\n")
    assert json.loads(lines[-1].partition("data: ")[2])["code"] == "server_error"
    assert (await http.post("/v1/responses", json={"input": "Hello"})).status_code == 500


def test_items_of_every_kind_are_translated() -> None:
    items = [
        {"role": "developer", "content": "Be brief."},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Weather?"}]},
        {"type": "reasoning", "id": "a", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "call_id": "a", "name": "weather", "arguments": "{}"},
        {"type": "function_call", "call_id": "b", "name": "weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "sunny"}]},
        {"type": "function_call_output", "call_id": "b", "output": "rainy"},
        {"role": "user", "content": "And?"},
    ]
    body = InputTokensBody.model_validate({"input": items, "instructions": "Answer.", "tools": [WEATHER]})
    messages = chat_body(body).model_dump(exclude_unset=True)["messages"]
    assert [message["role"] for message in messages] == [
        "system", "developer", "user", "assistant", "tool", "tool", "user"
    ]  # fmt: skip
    called = messages[3]
    assert called["reasoning_content"] == "Hm."
    assert called["content"] == [{"type": "text", "text": "I look."}]
    assert [call["id"] for call in called["tool_calls"]] == ["a", "b"]
    assert [message["tool_call_id"] for message in messages[4:6]] == ["a", "b"]


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"store": True}, "'store' is not supported"),
        ({"background": True}, "'background' is not supported"),
        ({"previous_response_id": "resp_1"}, "'previous_response_id' is not supported"),
        ({"conversation": "conv_1"}, "'conversation' is not supported"),
        ({"return_tokens": True}, "'return_tokens' is not supported"),
        ({"n": 2}, "'n' is not supported"),
        ({"truncation": "auto"}, "'truncation' is not supported"),
        ({"include": ["file_search_call.results"]}, "'include' is not supported"),
        ({"tools": [{"type": "web_search"}]}, "a tool of type 'web_search'"),
        ({"tool_choice": {"type": "allowed_tools"}}, "'allowed_tools' is not supported"),
        ({"tool_choice": "required"}, "there are no 'tools'"),
        ({"text": {"format": {"type": "grammar"}}}, "'text.format'"),
        ({"input": ""}, "'input' is empty"),
        ({"input": [{"type": "item_reference", "id": "a"}]}, "'item_reference' is not supported"),
        ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "'input_image' is not supported"),
        ({"input": [{"role": "robot", "content": "a"}]}, "type 'message' lacks a field"),
        ({"input": [{"type": "function_call", "call_id": "a"}]}, "type 'function_call' lacks a field"),
        ({"max_output_tokens": 0}, "'max_output_tokens' is wrong"),
    ],
)
async def test_what_cannot_be_answered_is_a_400(change: Json, part: str, http: httpx.AsyncClient) -> None:
    answer = await http.post("/v1/responses", json={"input": "Hello", **change})
    assert answer.status_code == 400
    assert part in answer.json()["error"]["message"]


async def test_values_that_ask_for_nothing_are_accepted(http: httpx.AsyncClient, say: Say) -> None:
    say("Yes.")
    neutral: Json = {"store": False, "background": False, "truncation": "disabled", "previous_response_id": None}
    neutral |= {"include": ["reasoning.encrypted_content"], "parallel_tool_calls": True, "prompt_cache_key": "a"}
    assert (await http.post("/v1/responses", json={"input": "Hello", **neutral})).status_code == 200


async def test_fields_of_all_generating_routes_hold_here_too(http: httpx.AsyncClient) -> None:
    asked: Json = {"input": "Hello", "grammar": 'root ::= "Yes" | "No"', "seed": 5, "max_tokens": 9}
    asked |= {"reasoning": {"effort": "none"}, "stream_options": {"include_obfuscation": False}, "user": "a"}
    answer = (await http.post("/v1/responses", json=asked)).json()
    assert answer["output"][0]["content"][0]["text"] in ("Yes", "No")
    assert answer["user"] == "a"
    free = {**asked, "grammar": "", "ignore_eos": True, "max_output_tokens": 4}
    assert (await http.post("/v1/responses", json=free)).json()["usage"]["output_tokens"] == 4


async def test_official_client_raises_its_own_errors(official: AsyncOpenAI) -> None:
    with pytest.raises(BadRequestError, match="'store' is not supported"):
        await official.responses.create(model="any", input="Hello", store=True)
