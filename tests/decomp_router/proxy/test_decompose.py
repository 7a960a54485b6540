"""POST /decompose."""

from __future__ import annotations

import json
from typing import Any

import pytest

from decomp_router.proxy.app import create_app
from tests.decomp_router.fakes import FixedReader, ScriptedUpstream
from tests.decomp_router.proxy.scripted_engine import PARTS, PLAN, client_of, settings


async def test_a_prompt_gives_its_plan_though_no_engine_runs() -> None:
    reader = FixedReader(PLAN)
    ticks = iter([1.0, 1.0125])
    app = create_app(settings(), reader, ScriptedUpstream({}), clock=lambda: next(ticks))
    async with client_of(app) as client:
        answer = await client.post("/decompose", json={"prompt": PLAN.prompt})
    assert answer.status_code == 200
    body = answer.json()
    assert [task["text"] for task in body["subtasks"]] == PARTS
    assert (body["cls"], body["fanout"], body["maxWidth"], body["ms"]) == ("parallel", True, 3, 12.5)
    assert reader.asked == [(PLAN.prompt, ())]


async def test_a_conversation_gives_the_plan_of_its_last_user_text() -> None:
    reader = FixedReader(PLAN)
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": PLAN.prompt}]
    async with client_of(create_app(settings(), reader, ScriptedUpstream({}))) as client:
        await client.post("/decompose", json={"messages": messages})
    assert reader.asked == [(PLAN.prompt, (("system", "Be brief."),))]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"\xff", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"[]", "either 'prompt' or 'messages'"),
        (b"{}", "either 'prompt' or 'messages'"),
        (b'{"prompt": "x", "messages": []}', "either 'prompt' or 'messages'"),
        (b'{"prompt": 3}', "'prompt' must be text"),
        (b'{"messages": "x"}', "'messages' must be a list"),
    ],
)
async def test_a_bad_body_is_answered_in_one_sentence(body: bytes, sentence: str) -> None:
    async with client_of(create_app(settings(), FixedReader(PLAN), ScriptedUpstream({}))) as client:
        answer = await client.post("/decompose", content=body)
    assert answer.status_code == 400
    error: dict[str, Any] = json.loads(answer.content)["error"]
    assert sentence in error["message"]
    assert error["message"].endswith(".")
    assert error["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([{"role": "system", "content": "Explain tides. Explain winds."}], "no message is the user's"),
        ([{"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "image_url"}]}], "is not text"),
    ],
)
async def test_what_is_not_all_text_of_a_user_is_linear_with_a_reason(messages: list[object], reason: str) -> None:
    reader = FixedReader(PLAN)
    async with client_of(create_app(settings(), reader, ScriptedUpstream({}))) as client:
        body = (await client.post("/decompose", json={"messages": messages})).json()
    assert body["fanout"] is False
    assert reason in body["reason"]
    assert reader.asked == []
