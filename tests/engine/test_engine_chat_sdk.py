"""The official OpenAI client, unchanged, against the engine: chat, stream, tools, schemas, probabilities, parsing."""

from collections.abc import AsyncIterator
from typing import Any, Literal

import httpx
import openai
import pytest
from openai import AsyncOpenAI, BadRequestError
from pydantic import BaseModel

from pascal_engine.engine import Engine
from pascal_engine.server import create_app
from tests.engine.speaking import Say, make_say

HELLO: list[Any] = [{"role": "user", "content": "Hello"}]
CALL = '<tool_call>\n{"name": "Weather", "arguments": {"city": "Köln", "days": 2}}\n</tool_call>'


class Weather(BaseModel):
    """The weather of a city."""

    city: str
    days: int


class Sky(BaseModel):
    colour: Literal["blue", "grey"]
    clear: bool


@pytest.fixture
def say(large: Engine, monkeypatch: pytest.MonkeyPatch) -> Say:
    return make_say(large, monkeypatch)


@pytest.fixture
async def official(large: Engine) -> AsyncIterator[AsyncOpenAI]:
    transport = httpx.ASGITransport(create_app(large), raise_app_exceptions=False)
    http = httpx.AsyncClient(transport=transport, base_url="http://engine", timeout=30)
    async with AsyncOpenAI(base_url="http://engine/v1", api_key="none", http_client=http, max_retries=0) as official:
        yield official


async def test_a_chat_whole_and_streamed(official: AsyncOpenAI, say: Say) -> None:
    say("Good day to you.")
    answer = await official.chat.completions.create(model="any", messages=HELLO, seed=1, user="me")
    assert answer.choices[0].message.content == "Good day to you."
    assert (answer.choices[0].finish_reason, answer.model) == ("stop", "any")
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    stream = await official.chat.completions.create(
        model="any", messages=HELLO, stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == "Good day to you."
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == answer.usage.completion_tokens


async def test_tools_there_and_back(official: AsyncOpenAI, say: Say) -> None:
    say(f"<think>\nThey want weather.\n</think>\n\nI look.\n{CALL}")
    tools: list[Any] = [openai.pydantic_function_tool(Weather)]
    answer = await official.chat.completions.create(model="any", messages=HELLO, tools=tools)
    message = answer.choices[0].message
    assert answer.choices[0].finish_reason == "tool_calls"
    assert (message.content, message.to_dict()["reasoning_content"]) == ("I look.", "They want weather.")
    assert message.tool_calls is not None
    (call,) = message.tool_calls
    assert call.type == "function"
    assert (call.function.name, call.function.arguments) == ("Weather", '{"city": "Köln", "days": 2}')
    say("Two days of sun.")
    result: Any = {"role": "tool", "tool_call_id": call.id, "content": "sun"}
    turns: list[Any] = [*HELLO, message, result]
    answer = await official.chat.completions.create(model="any", messages=turns, tools=tools)
    assert answer.choices[0].message.content == "Two days of sun."


async def test_the_streaming_helper_parses_calls(official: AsyncOpenAI, say: Say) -> None:
    say(f"I look.\n{CALL}")
    tools: list[Any] = [openai.pydantic_function_tool(Weather)]
    async with official.chat.completions.stream(model="any", messages=HELLO, tools=tools) as stream:
        kinds = [event.type async for event in stream]
        final = await stream.get_final_completion()
    assert kinds.count("tool_calls.function.arguments.delta") > 3
    assert kinds.count("tool_calls.function.arguments.done") == 1
    message = final.choices[0].message
    assert message.tool_calls is not None
    assert message.tool_calls[0].function.parsed_arguments == Weather(city="Köln", days=2)


async def test_an_untrained_model_makes_a_call_and_an_object_that_parse(official: AsyncOpenAI) -> None:
    class Pick(BaseModel):
        sky: Sky

    settings: Any = {"model": "any", "messages": HELLO, "seed": 3, "max_tokens": 300, "reasoning_effort": "none"}
    tools: list[Any] = [openai.pydantic_function_tool(Pick)]
    called = await official.chat.completions.parse(**settings, tools=tools, tool_choice="required", n=2)
    for choice in called.choices:
        assert choice.message.tool_calls is not None
        assert isinstance(choice.message.tool_calls[0].function.parsed_arguments, Pick)
    parsed = await official.chat.completions.parse(**settings, response_format=Sky)
    assert isinstance(parsed.choices[0].message.parsed, Sky)


async def test_probabilities(official: AsyncOpenAI) -> None:
    answer = await official.chat.completions.create(
        model="any", messages=HELLO, logprobs=True, top_logprobs=2, max_completion_tokens=5
    )
    logprobs = answer.choices[0].logprobs
    assert logprobs is not None
    assert logprobs.content is not None
    assert len(logprobs.content) == 5
    assert all(len(entry.top_logprobs) == 2 and entry.bytes is not None for entry in logprobs.content)


async def test_errors_are_told_as_the_client_expects(official: AsyncOpenAI) -> None:
    picture: Any = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]
    with pytest.raises(BadRequestError, match="reads text only"):
        await official.chat.completions.create(model="any", messages=picture)
