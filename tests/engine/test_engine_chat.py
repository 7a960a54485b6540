"""/v1/chat/completions: tools, thoughts, schemas, probabilities, several choices; streams add up to whole answers."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import jsonschema
import pytest

from pascal_engine.engine import Engine
from pascal_engine.server import create_app
from pascal_engine.tokenizer import ChatTemplate
from tests.engine.harness import DATA, Json, Post, events
from tests.engine.speaking import Say, make_say

HELLO: list[Json] = [{"role": "user", "content": "Hello"}]
GREEDY: Json = {"temperature": 0, "max_tokens": 40}
SCHEMA: Json = {
    "type": "object",
    "properties": {
        "days": {"type": "integer", "minimum": 1, "maximum": 9},
        "dry": {"type": "boolean"},
        "sky": {"enum": ["blue", "grey"]},
        "at": {"$ref": "#/$defs/place"},
    },
    "required": ["days", "at"],
    "additionalProperties": False,
    "$defs": {"place": {"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 2}},
}
WEATHER: Json = {"type": "function", "function": {"name": "weather", "description": "Tells", "parameters": SCHEMA}}
NOW: Json = {"type": "function", "function": {"name": "now"}}
CALL = '<tool_call>\n{"name": "weather", "arguments": {"days": 3, "at": [true]}}\n</tool_call>'
ARGUMENTS = {"days": 3, "at": [True]}
XML_CALL = """<tool_call>
<function=weather>
<parameter=days>
3
</parameter>
<parameter=at>
[true]
</parameter>
</function>
</tool_call>"""


@pytest.fixture
def say(large: Engine, monkeypatch: pytest.MonkeyPatch) -> Say:
    return make_say(large, monkeypatch)


def templated(engine: Engine, name: str) -> Engine:
    """`engine` with one of the templates of the fixtures."""
    source = (DATA / "templates" / f"{name}.jinja").read_text()
    return replace(engine, template=ChatTemplate(source, engine.tokenizer.bos_text, engine.tokenizer.eos_text))


@pytest.fixture(params=["hermes", "xml"])
def syntax(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def chat(large: Engine, syntax: str) -> AsyncIterator[Post]:
    """chat(**fields) of an engine whose template has the calls of `syntax`."""
    engine = templated(large, "qwen-xml") if syntax == "xml" else large
    transport = httpx.ASGITransport(create_app(engine), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://engine", timeout=30) as client:
        yield lambda **body: client.post("/v1/chat/completions", json={"messages": HELLO, **GREEDY, **body})


class Streamed:
    """What the chunks of a stream come to, choice by choice."""

    def __init__(self, response: httpx.Response) -> None:
        self.chunks = events(response)
        self.choices: dict[int, Json] = {}
        self.logprobs: list[Json] = []
        self.reasons: dict[int, str] = {}
        for chunk in self.chunks:
            for choice in chunk["choices"]:
                self._add(choice)

    def _add(self, choice: Json) -> None:
        index, delta = choice["index"], choice["delta"]
        if "role" in delta:
            assert delta == {"role": "assistant", "content": None}
            self.choices[index] = {"role": "assistant", "content": ""}
            return
        assert index not in self.reasons, "something follows the end"
        message = self.choices[index]
        for key in ("content", "reasoning_content"):
            if key in delta:
                assert delta[key]
                message[key] = message.get(key, "") + delta[key]
        for call in delta.get("tool_calls", []):
            self._add_call(message.setdefault("tool_calls", []), call)
        self.logprobs += (choice["logprobs"] or {"content": []})["content"]
        if choice["finish_reason"] is not None:
            self.reasons[index] = choice["finish_reason"]

    def _add_call(self, calls: list[Json], call: Json) -> None:
        if "id" in call:
            assert call["index"] == len(calls)
            assert call["function"]["arguments"] == ""
            calls.append({"id": call["id"], "type": call["type"], "function": dict(call["function"])})
        else:
            assert call["index"] == len(calls) - 1
            calls[-1]["function"]["arguments"] += call["function"]["arguments"]


def alike(message: Json) -> Json:
    """A message without what differs each time."""
    calls = [call["function"] for call in message.get("tool_calls") or []]
    return {**message, "content": message["content"] or "", "tool_calls": calls}


async def both(chat: Post, **body: Any) -> tuple[Json, str]:  # noqa: ANN401
    """The message of the whole answer, which that of the stream equals, and why it ended."""
    whole = (await chat(**body)).json()
    assert "choices" in whole, whole
    (choice,) = whole["choices"]
    streamed = Streamed(await chat(**body, stream=True))
    assert alike(streamed.choices[0]) == alike(choice["message"])
    assert streamed.reasons[0] == choice["finish_reason"]
    return choice["message"], choice["finish_reason"]


def arguments(message: Json) -> list[tuple[str, Any]]:
    calls = [call["function"] for call in message["tool_calls"]]
    return [(call["name"], json.loads(call["arguments"])) for call in calls]


async def test_a_call_of_a_function(chat: Post, say: Say, syntax: str) -> None:
    call = CALL if syntax == "hermes" else "</think>\n\n" + XML_CALL
    say(call)
    message, reason = await both(chat, tools=[WEATHER, NOW], max_tokens=400)
    assert reason == "tool_calls"
    assert message["content"] == ""
    assert arguments(message) == [("weather", ARGUMENTS)]
    assert message["tool_calls"][0]["id"].startswith("call_")


async def test_thought_content_and_two_calls(chat: Post, say: Say, syntax: str) -> None:
    call = CALL if syntax == "hermes" else XML_CALL
    opening = "<think>" if syntax == "hermes" else ""
    say(f"{opening}\nHm <tool_call>?\n</think>\n\nLet me see.\n\n{call}\n{call}")
    message, reason = await both(chat, tools=[WEATHER], max_tokens=450)
    assert reason == "tool_calls"
    assert (message["reasoning_content"], message["content"]) == ("Hm <tool_call>?", "Let me see.")
    assert arguments(message) == [("weather", ARGUMENTS)] * 2


@pytest.mark.parametrize("syntax", ["hermes"], indirect=True)
async def test_where_no_call_may_be_read_it_is_content(chat: Post, say: Say, syntax: str) -> None:
    say(CALL)
    for body in ({}, {"tools": [WEATHER], "tool_choice": "none"}):
        message, reason = await both(chat, **body, max_tokens=200)
        assert (message["content"], reason) == (CALL, "stop")
        assert "tool_calls" not in message


@pytest.mark.parametrize("syntax", ["hermes"], indirect=True)
async def test_a_call_cut_short_is_no_error(chat: Post, say: Say, syntax: str) -> None:
    say(CALL)
    message, reason = await both(chat, tools=[WEATHER], max_tokens=24)
    assert reason == "length"
    assert message["content"] == "<tool_call>\n" + CALL.split("\n")[1][: len(message["content"]) - 12]


@pytest.mark.parametrize("seed", range(2))
async def test_what_tool_choice_demands_is_valid_against_the_schema(chat: Post, seed: int, syntax: str) -> None:
    """The model is untrained: all sense in its answer is the grammar's."""
    demands: list[Json] = [
        {"tools": [WEATHER, NOW], "tool_choice": "required", "parallel_tool_calls": False},
        {"tools": [WEATHER, NOW], "tool_choice": {"type": "function", "function": {"name": "weather"}}},
    ]
    for demand in demands:
        body = {**demand, "temperature": 1.5, "seed": seed, "max_tokens": 400, "reasoning_effort": "none"}
        message, reason = await both(chat, **body)
        assert reason == "tool_calls"
        ((name, given),) = arguments(message)
        assert not message["content"]
        if name == "weather":
            jsonschema.validate(given, SCHEMA)
        else:
            assert (name, given) == ("now", {})


@pytest.mark.parametrize("choice", ["auto", "required"])
async def test_tools_may_have_keywords_that_no_grammar_holds(chat: Post, choice: str, syntax: str) -> None:
    """Agents send what the authors of tools wrote: one such keyword must not cost the chat."""
    keys: Json = {
        "map": {"type": "object", "propertyNames": {"type": "string"}, "additionalProperties": {"type": "integer"}},
        "set": {"type": "array", "items": {"type": "boolean"}, "uniqueItems": True, "maxItems": 2},
        "either": {"oneOf": [{"type": "integer", "maximum": 9}, {"type": "number", "maximum": 9}]},
        "area": {"type": "string", "format": "textarea", "maxLength": 5},
        "never": {"not": {}},
    }
    parameters = {"type": "object", "properties": keys, "required": ["set"], "if": {}, "dependentRequired": {}}
    tool = {"type": "function", "function": {"name": "odd", "parameters": parameters}}
    response = await chat(tools=[tool], tool_choice=choice, max_tokens=2)
    assert response.status_code == 200, response.text


@pytest.mark.parametrize("syntax", ["hermes"], indirect=True)
@pytest.mark.parametrize("thinking", [False, True])
async def test_an_answer_follows_its_schema(chat: Post, say: Say, thinking: bool, syntax: str) -> None:
    formats: list[tuple[Json, str]] = [
        ({"type": "json_schema", "json_schema": {"name": "w", "schema": SCHEMA}}, '{"days": 3, "at": [true]}'),
        ({"type": "json_object"}, '{"a": [1, "x"]}'),
    ]
    for wanted, text in formats:
        say(("<think>\nHm.\n</think>\n\n" if thinking else "") + text + " and more")
        message, reason = await both(chat, response_format=wanted, max_tokens=200)
        assert (message["content"], reason) == (text, "stop")
        assert message.get("reasoning_content") == ("Hm." if thinking else None)


@pytest.mark.parametrize("syntax", ["hermes"], indirect=True)
async def test_an_untrained_model_follows_its_schema(chat: Post, syntax: str) -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "w", "schema": SCHEMA, "strict": True}}
    for seed in range(2):
        body = {"response_format": wanted, "temperature": 1.5, "seed": seed, "reasoning_effort": "none"}
        message, reason = await both(chat, **body, max_tokens=250)
        assert reason == "stop"
        jsonschema.validate(json.loads(message["content"]), SCHEMA)


@pytest.mark.parametrize("syntax", ["hermes"], indirect=True)
async def test_thoughts_stay_in_the_content_where_asked(chat: Post, say: Say, syntax: str) -> None:
    say("<think>\nHm.\n</think>\n\nWell.")
    message, _ = await both(chat, reasoning_format="none")
    assert message == {"role": "assistant", "content": "<think>\nHm.\n</think>\n\nWell."}
    message, _ = await both(chat, reasoning_format="deepseek")
    assert message == {"role": "assistant", "content": "Well.", "reasoning_content": "Hm."}


@pytest.mark.parametrize("syntax", ["hermes"], indirect=True)
async def test_probabilities_of_tokens(chat: Post, syntax: str, large: Engine) -> None:
    body = {"logprobs": True, "top_logprobs": 3, "max_tokens": 12, "temperature": 0, "ignore_eos": True}
    answer = (await chat(**body)).json()
    (choice,) = answer["choices"]
    entries = choice["logprobs"]["content"]
    assert len(entries) == 12
    for entry in entries:
        assert len(entry["top_logprobs"]) == 3
        best = entry["top_logprobs"][0]
        assert {key: entry[key] for key in ("token", "bytes", "logprob")} == {
            key: best[key] for key in ("token", "bytes", "logprob")
        }
        assert entry["logprob"] <= 0
        assert bytes(entry["bytes"]).decode("utf-8", "replace") == entry["token"]
    streamed = Streamed(await chat(**body, stream=True))
    assert streamed.logprobs == entries
    bare = (await chat(**{**body, "top_logprobs": 0})).json()["choices"][0]["logprobs"]["content"]
    assert [entry["top_logprobs"] for entry in bare] == [[]] * 12
    assert (await chat(max_tokens=2)).json()["choices"][0]["logprobs"] is None


@pytest.mark.parametrize("syntax", ["hermes"], indirect=True)
async def test_a_stream_tells_how_far_it_is(chat: Post, syntax: str) -> None:
    long = [{"role": "user", "content": "How far are you now? " * 9}]
    body = {"messages": long, "return_progress": True, "timings_per_token": True, "max_tokens": 6, "ignore_eos": True}
    chunks = Streamed(await chat(**body, stream=True)).chunks
    told = [chunk["prompt_progress"] for chunk in chunks if "prompt_progress" in chunk]
    assert len(told) > 1
    assert told[-1]["processed"] == told[-1]["total"]
    assert all("timings" in chunk for chunk in chunks if "prompt_progress" in chunk)
    counts = [chunk["timings"]["predicted_n"] for chunk in chunks if "timings" in chunk]
    assert counts == sorted(counts)
    assert counts[-1] == 6


@pytest.mark.parametrize("syntax", ["hermes"], indirect=True)
async def test_a_slow_template_holds_nobody_up(
    chat: Post, syntax: str, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendering, released, render = threading.Event(), threading.Event(), ChatTemplate.render

    def slow(self: ChatTemplate, *args: Any, **kwargs: Any) -> str:  # noqa: ANN401
        rendering.set()
        assert released.wait(timeout=20)
        return render(self, *args, **kwargs)

    monkeypatch.setattr(ChatTemplate, "render", slow)
    answer = asyncio.ensure_future(chat(max_tokens=2))
    assert await asyncio.to_thread(rendering.wait, 20)
    assert (await client.get("/health")).status_code == 200
    assert not answer.done()
    released.set()
    assert (await answer).status_code == 200


@pytest.mark.parametrize("syntax", ["hermes"], indirect=True)
async def test_several_choices(chat: Post, syntax: str) -> None:
    body = {"n": 3, "seed": 7, "temperature": 1.5, "max_tokens": 10, "ignore_eos": True}
    answer = (await chat(**body)).json()
    choices = answer["choices"]
    assert [choice["index"] for choice in choices] == [0, 1, 2]
    assert len({choice["message"]["content"] for choice in choices}) == 3
    alone = [(await chat(**{**body, "n": 1, "seed": 7 + k})).json()["choices"][0]["message"] for k in range(3)]
    assert [choice["message"] for choice in choices] == alone
    assert answer["usage"]["completion_tokens"] == 30
    streamed = Streamed(await chat(**body, stream=True, stream_options={"include_usage": True}))
    assert {k: streamed.choices[k]["content"] for k in range(3)} == {k: alone[k]["content"] for k in range(3)}
    assert streamed.chunks[-1]["usage"]["completion_tokens"] == 30
    assert "at most 3 choices" in (await chat(n=4)).json()["error"]["message"]


@pytest.mark.parametrize("syntax", ["hermes"], indirect=True)
async def test_the_next_turn_computes_only_what_is_new(chat: Post, say: Say, syntax: str) -> None:
    """The thought is not part of the next prompt, so the state after it is of no use: that after the question is."""
    say("<think>\nA long thought about greeting people in general.\n</think>\n\nHello there.")
    question = {"role": "user", "content": "A question of the second test, which is asked at length. " * 3}
    first = (await chat(messages=[question], max_tokens=80)).json()
    answer = {"role": "assistant", "content": first["choices"][0]["message"]["content"]}
    again = (await chat(messages=[question, answer, *HELLO], max_tokens=80)).json()
    asked = first["usage"]["prompt_tokens"]
    assert again["usage"]["prompt_tokens_details"]["cached_tokens"] >= asked - 5
    other = (await chat(messages=[question, {**answer, "content": "Bye."}, *HELLO], max_tokens=80)).json()
    assert other["usage"]["prompt_tokens_details"]["cached_tokens"] >= asked - 5


@pytest.mark.parametrize("syntax", ["hermes"], indirect=True)
async def test_results_of_calls_reach_the_template(large: Engine, syntax: str) -> None:
    calls = [{"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"days":3}'}}]
    messages = [
        {"role": "developer", "content": "Be brief."},
        *HELLO,
        {"role": "assistant", "content": None, "tool_calls": calls, "reasoning_content": "Hm."},
        {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "sun"}]},
    ]
    transport = httpx.ASGITransport(create_app(templated(large, "qwen-json")))
    async with httpx.AsyncClient(transport=transport, base_url="http://engine") as client:
        body = {"messages": messages, "tools": [WEATHER, NOW], "chat_template_kwargs": {"enable_thinking": False}}
        prompt = (await client.post("/apply-template", json=body)).json()["prompt"]
    head, _, tail = prompt.partition("<|im_start|>user\nHello<|im_end|>\n")
    assert head.startswith("<|im_start|>system\nBe brief.\n\n# Tools")
    assert json.dumps(WEATHER) in head
    assert '{"name": "now", "parameters": {"type": "object", "properties": {}}}' in head
    assert tail == (
        '<|im_start|>assistant\n<think>\nHm.\n</think>\n\n<tool_call>\n{"name": "weather", "arguments": {"days":3}}\n'
        "</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>\nsun\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\n<think>\n\n</think>\n\n"
    )


@pytest.mark.parametrize("syntax", ["hermes"], indirect=True)
@pytest.mark.parametrize(
    ("body", "part"),
    [
        ({"tools": [{"type": "function"}]}, "'function' is wrong"),
        ({"tools": [{"type": "function", "function": {"name": 5}}]}, "'function.name' is wrong"),
        ({"tools": [{"type": "web_search"}]}, "'type' is wrong"),
        ({"tools": [NOW, NOW]}, "same name"),
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "other characters"),
        ({"tools": [NOW], "tool_choice": "always"}, "'tool_choice' must be"),
        ({"tools": [NOW], "tool_choice": {"type": "function", "function": {"name": "f"}}}, "not among the 'tools'"),
        ({"tools": [NOW], "tool_choice": {"type": "allowed_tools"}}, "is not supported"),
        ({"tool_choice": "required"}, "there are no 'tools'"),
        ({"tools": [NOW], "grammar": 'root ::= "a"'}, "'grammar' cannot hold"),
        ({"top_logprobs": 3}, "needs 'logprobs'"),
        ({"logprobs": True, "top_logprobs": 21}, "'top_logprobs' is wrong"),
        ({"n": 0}, "'n' is wrong"),
        ({"response_format": {"type": "json_schema"}}, "must have 'json_schema'"),
        ({"response_format": {"type": "xml"}}, "'response_format.type' is wrong"),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "nonsense"}}}}, "schema"),
        ({"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "x"}}}]}, "cannot be used"),
        ({"reasoning_format": "all"}, "'reasoning_format' is wrong"),
        ({"chat_template_kwargs": {"enable_thinking": "no"}}, "must be true or false"),
        ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "reads text only"),
        ({"messages": [{"role": "user", "content": [{"text": "a"}]}]}, "an object with 'type'"),
        ({"messages": [{"role": "assistant"}]}, "must have 'content'"),
        ({"messages": [{"role": "assistant", "function_call": {}, "content": ""}]}, "'tool_calls' replaced"),
        ({"messages": HELLO, "continue_final_message": True}, "needs a last message"),
    ],
)
async def test_what_cannot_be_done_is_a_400(body: Json, part: str, chat: Post, syntax: str) -> None:
    response = await chat(**body)
    message = response.json()["error"]["message"]
    assert (response.status_code, "\n" in message) == (400, False)
    assert part in message


@pytest.mark.parametrize(("name", "parts"), [("qwen-json", False), ("qwen-xml", True), ("gemma", True)])
async def test_props_tell_which_content_the_template_takes(large: Engine, name: str, parts: bool) -> None:
    transport = httpx.ASGITransport(create_app(templated(large, name)))
    async with httpx.AsyncClient(transport=transport, base_url="http://engine") as client:
        told = (await client.get("/props")).json()["chat_template_caps"]
    assert (told["supports_typed_content"], told["supports_string_content"]) == (parts, True)


async def test_tools_are_refused_where_the_template_has_no_readable_form(large: Engine) -> None:
    transport = httpx.ASGITransport(create_app(templated(large, "mistral")))
    async with httpx.AsyncClient(transport=transport, base_url="http://engine") as client:
        answer = await client.post("/v1/chat/completions", json={"messages": HELLO, "tools": [NOW]})
    assert answer.json()["error"]["type"] == "not_supported_error"


async def test_a_message_of_the_assistant_is_continued(large: Engine) -> None:
    begun = [*HELLO, {"role": "assistant", "content": "Well, "}]
    transport = httpx.ASGITransport(create_app(templated(large, "qwen-json")))
    async with httpx.AsyncClient(transport=transport, base_url="http://engine") as client:
        prompts = [
            (await client.post("/apply-template", json={"messages": begun, **body})).json()["prompt"]
            for body in ({}, {"continue_final_message": False}, {"add_generation_prompt": False})
        ]
    assert prompts[0].endswith("</think>\n\nWell, ")
    assert prompts[1].endswith("Well, <|im_end|>\n<|im_start|>assistant\n")
    assert prompts[2].endswith("Well, <|im_end|>\n")


@pytest.mark.parametrize("syntax", ["hermes"], indirect=True)
async def test_a_thought_is_continued(chat: Post, say: Say, syntax: str) -> None:
    say(" and so on.\n</think>\n\nWell.")
    begun = [*HELLO, {"role": "assistant", "content": "<think>\nFirst"}]
    message, _ = await both(chat, messages=begun)
    assert (message["reasoning_content"], message["content"]) == ("First and so on.", "Well.")
    message, _ = await both(chat, messages=[*HELLO, {"role": "assistant", "content": "So"}])
    assert message["content"] == "So and so on.\n</think>\n\nWell."
