"""What may never fan out."""

from __future__ import annotations

from typing import Any

import pytest

from decomp_router.gate.eligibility import MAX_PROMPT_BYTES, obstacle, token_limit

PLAIN = {"model": "m", "messages": [{"role": "user", "content": "Write a haiku. List three rivers."}]}


def asked(content: object, *before: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [*before, {"role": "user", "content": content}]}


@pytest.mark.parametrize(
    "extra",
    [
        {},
        {"stream": True, "stream_options": {"include_usage": True}},
        {"temperature": 0.2, "seed": 7, "top_p": 0.9, "max_tokens": 64, "stop": ["END"]},
        {"n": 1, "logprobs": False, "tools": [], "response_format": {"type": "text"}},
        asked([{"type": "text", "text": "Write a haiku."}]),
        asked("And now two more.", {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}),
    ],
)
def test_plain_requests_may_fan_out(extra: dict[str, Any]) -> None:
    assert obstacle({**PLAIN, **extra}) is None


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        ({"tools": [{"type": "function"}]}, "tools"),
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"response_format": {"type": "json_object"}}, "response format"),
        ({"response_format": {"type": "json_schema", "json_schema": {}}}, "response format"),
        ({"grammar": 'root ::= "x"'}, "grammar"),
        ({"json_schema": {"type": "object"}}, "JSON schema"),
        ({"n": 2}, "several choices"),
        ({"logprobs": True}, "log probabilities"),
        ({"n_probs": 3}, "log probabilities"),
        ({"modalities": ["text", "audio"]}, "more than text"),
        ({"id_slot": 2}, "slot"),
        ({"add_generation_prompt": False}, "begun"),
        ({"continue_final_message": True}, "continued"),
        ({"max_tokens": 63}, "63 tokens"),
        ({"max_completion_tokens": 10}, "10 tokens"),
        ({"stream": "yes"}, "type"),
        ({"stop": [1]}, "type"),
        ({"max_tokens": True}, "type"),
        ({"stream_options": "all"}, "type"),
        ({"messages": []}, "'messages'"),
        ({"messages": "hello"}, "'messages'"),
        ({"messages": ["hello"]}, "messages[0]"),
        ({"messages": [{"role": "system", "content": "Be brief."}]}, "not the user's"),
        ({"messages": [*PLAIN["messages"], {"role": "assistant", "content": "Sure, "}]}, "not the user's"),
        (asked([{"type": "image_url", "image_url": {"url": "data:"}}]), "more than text"),
        (asked("Now.", {"role": "tool", "content": "42"}), "tool calls"),
        (asked("Now.", {"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]}), "tool calls"),
        (asked("  \n"), "empty"),
        (asked("\ud800"), "Unicode"),
        (asked("é" * (MAX_PROMPT_BYTES // 2) + "!"), "too long"),
    ],
)
def test_reasons_to_stay_linear(extra: dict[str, Any], reason: str) -> None:
    assert reason in (obstacle({**PLAIN, **extra}) or "")


def test_a_prompt_of_exactly_the_limit_may_fan_out() -> None:
    assert obstacle(asked("x" * MAX_PROMPT_BYTES)) is None


@pytest.mark.parametrize(
    ("body", "limit"),
    [
        ({}, None),
        ({"max_tokens": 90}, 90),
        ({"max_completion_tokens": 80, "max_tokens": 90}, 80),
        ({"n_predict": -1}, None),
    ],
)
def test_token_limit(body: dict[str, Any], limit: int | None) -> None:
    assert token_limit(body) == limit
