"""Whatever JSON a body of Anthropic's or the Responses API holds: it becomes a chat, or a 400 with one sentence."""

import contextlib
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from pascal_engine.server.anthropic import translate as anthropic
from pascal_engine.server.anthropic.schema import CountTokensBody, MessagesBody
from pascal_engine.server.chat.schema import ChatBody
from pascal_engine.server.errors import ApiError, translate
from pascal_engine.server.hygiene import cleaned
from pascal_engine.server.responses import translate as responses
from pascal_engine.server.responses.schema import InputTokensBody, ResponsesBody

WORDS = (
    "type", "role", "content", "text", "thinking", "tool_use", "tool_result", "tool_use_id", "id", "name", "input",
    "input_schema", "call_id", "arguments", "output", "message", "function_call", "function_call_output",
    "reasoning", "summary", "user", "assistant", "system", "developer", "input_text", "output_text",
    "reasoning_text", "function", "parameters", "json_schema", "schema", "any", "tool", "auto", "none", "effort",
    "format", "x-nonce:",
)  # fmt: skip
words = st.sampled_from(WORDS)
leaves = st.none() | st.booleans() | st.integers(-2, 2) | words | st.text(max_size=3)
values: st.SearchStrategy[Any] = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=4), max_leaves=12
)


def objects(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects of which most have the fields that they should have."""
    return st.fixed_dictionaries({}, optional={name: known | values for name, known in fields.items()})


texts = st.text(max_size=3)
blocks = st.lists(
    objects(type=words, text=texts, thinking=texts, id=texts, name=texts, input=st.just({}), tool_use_id=texts),
    max_size=4,
)
roles = st.sampled_from(["user", "assistant", "system", "developer"])
turns = st.lists(objects(role=roles, content=texts | blocks), max_size=4)
tools = st.lists(objects(type=words, name=texts, input_schema=st.just({}), parameters=st.just({})), max_size=2)
common = {"tools": tools, "tool_choice": objects(type=words, name=texts) | words}
claude = objects(
    messages=turns, system=texts | blocks, max_tokens=st.just(5), thinking=objects(type=words), **common,
    output_config=objects(format=objects(type=words)),
)  # fmt: skip
items = st.lists(
    objects(type=words, role=roles, content=texts | blocks, call_id=texts, name=texts, arguments=texts, output=texts),
    max_size=4,
)
openai = objects(
    input=texts | items, instructions=texts, text=objects(format=objects(type=words)), **common,
    reasoning=objects(effort=texts),
)  # fmt: skip


def check(make: Any, body: dict[str, Any]) -> None:  # noqa: ANN401
    try:
        chat = make(body)
    except (ApiError, ValidationError) as error:
        answer = translate(error)
        assert answer.status == 400
        assert "\n" not in str(answer)
    else:
        assert isinstance(chat, ChatBody)
        with contextlib.suppress(IndexError):
            assert cleaned(chat).messages[0].role in ("user", "assistant", "system", "developer", "tool")


@settings(max_examples=200, deadline=None)
@given(claude)
def test_anthropics_bodies(body: dict[str, Any]) -> None:
    for kind in (CountTokensBody, MessagesBody):
        check(lambda body, kind=kind: anthropic.chat_body(kind.model_validate(body), hygiene=True), body)


@settings(max_examples=200, deadline=None)
@given(openai)
def test_bodies_of_responses(body: dict[str, Any]) -> None:
    for kind in (InputTokensBody, ResponsesBody):
        check(lambda body, kind=kind: responses.chat_body(kind.model_validate(body)), body)
