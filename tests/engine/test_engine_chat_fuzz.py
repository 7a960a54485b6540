"""Whatever a body holds, the answer is 200 or a 400 with one sentence."""

import asyncio
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pascal_engine.engine import Engine
from pascal_engine.server import create_app
from tests.engine.harness import Json
from tests.engine.test_engine_chat import templated

ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-2, 2) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)


def mainly(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """One value in forty is nonsense."""
    return st.integers(0, 39).flatmap(lambda draw: strategy if draw else ANY)


def shape(**keys: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """An object with the first two keys and some of the others, values now and then nonsense."""
    mostly = {key: mainly(value) for key, value in keys.items()}
    always = dict(list(mostly.items())[:2])
    rest = {key: value for key, value in mostly.items() if key not in always}
    return mainly(st.fixed_dictionaries(always, optional=rest))


SCHEMA = st.sampled_from(
    [
        {},
        {"type": "object"},
        {"type": "object", "properties": {"a": {"type": "string"}, "b": {"$ref": "#/$defs/x"}}, "required": ["a"]},
        {"properties": {"a": {"enum": ["x", 1, None]}}, "additionalProperties": False},
        {"properties": [], "required": "a"},
        {"$ref": "#"},
        {"properties": {"a b\n": True, "<": {"type": ["integer", "null"]}}},
        {"type": "array"},
    ]
)
CALLS = st.lists(
    shape(function=shape(name=st.just("f"), arguments=st.text("{}")), type=st.just("function"), id=st.text(max_size=3)),
    max_size=2,
)
CONTENT = st.text(max_size=5) | st.lists(shape(type=st.just("text"), text=st.text(max_size=3)), max_size=2)
MESSAGE = shape(
    role=st.sampled_from(["system", "developer", "user", "assistant", "tool", "function"]),
    content=CONTENT,
    tool_calls=CALLS,
    reasoning_content=st.text(max_size=3),
)
TOOL = shape(type=st.just("function"), function=shape(name=st.sampled_from(["f", "g", "é", '"']), parameters=SCHEMA))
CHOICE = st.sampled_from(["none", "auto", "required", {"type": "function", "function": {"name": "f"}}])
BODY = st.fixed_dictionaries(
    {"messages": st.lists(MESSAGE, min_size=1, max_size=3)},
    optional={
        "tools": st.lists(TOOL, max_size=2),
        "tool_choice": CHOICE,
        "response_format": shape(
            type=st.sampled_from(["text", "json_object", "json_schema"]), json_schema=shape(schema=SCHEMA)
        ),
        "n": st.integers(0, 3),
        "logprobs": st.booleans(),
        "stream": st.booleans(),
        "reasoning_effort": st.sampled_from(["none", "low"]),
        "chat_template_kwargs": shape(enable_thinking=st.booleans()),
        "continue_final_message": st.booleans(),
        "stop": st.text(max_size=2),
        "logit_bias": st.dictionaries(st.sampled_from(["5", "a", "x"]), st.floats(-2, 2), max_size=2),
    },
)


@pytest.mark.parametrize("template", ["qwen-json", "qwen-xml", "llama", "mistral", "gemma"])
def test_no_body_is_a_fault_of_the_server(template: str, large: Engine) -> None:
    app = create_app(templated(large, template))

    async def ask(body: Json) -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://engine", timeout=30) as client:
            return await client.post("/v1/chat/completions", json=body)

    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    @given(body=BODY)
    def hold(body: Json) -> None:
        response = asyncio.run(ask({**body, "max_tokens": 2}))
        assert response.status_code in (200, 400)
        if response.status_code == 400:
            assert response.json()["error"]["message"]

    hold()
