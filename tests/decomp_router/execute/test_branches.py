"""The request of each branch."""

from __future__ import annotations

import json
from typing import Any

from decomp_router.execute.branches import Branches
from tests.decomp_router.fakes import plan_of

PLAN = plan_of("Write a haiku.", "List three rivers.", "Translate the haiku.", deps={3: [1]})
ASKED = {"role": "user", "content": PLAN.prompt}


def bodies(**fields: object) -> list[dict[str, Any]]:
    branches = Branches({"messages": [ASKED], **fields}, PLAN)
    answers = {"t1": "Old pond."}
    return [json.loads(branches.body(task, answers)) for task in PLAN.subtasks]


def test_the_instruction_stands_inside_the_last_user_message() -> None:
    first = bodies()[0]
    assert first["messages"] == [
        {
            "role": "user",
            "content": f"{PLAN.prompt}\n\n[Answer only this part of the message above: «Write a haiku.». "
            "Do not answer the other parts; no greeting, no preamble, no closing.]",
        }
    ]


def test_a_child_sees_its_parents_answer_as_a_turn() -> None:
    child = bodies()[2]
    assert [message["role"] for message in child["messages"]] == ["user", "assistant", "user"]
    assert child["messages"][0] == ASKED
    assert child["messages"][1]["content"] == "Old pond."
    assert "«Translate the haiku.»" in child["messages"][2]["content"]


def test_parameters_are_carried_and_what_concerns_the_merged_answer_is_not() -> None:
    for body in bodies(model="m", temperature=0.3, seed=9, max_tokens=200, stop=["X"], stream=False, mirostat=2):
        assert "stop" not in body
        assert body["stream"] is True
        assert body["stream_options"] == {"include_usage": True}
        carried = {name: body[name] for name in ("model", "temperature", "seed", "max_tokens", "mirostat")}
        assert carried == {"model": "m", "temperature": 0.3, "seed": 9, "max_tokens": 200, "mirostat": 2}


def test_earlier_turns_stay_as_they_are_and_parts_are_extended() -> None:
    system = {"role": "system", "content": "Be brief.", "name": "s"}
    parts = [{"type": "text", "text": "A."}, {"type": "text", "text": PLAN.prompt}]
    branches = Branches({"messages": [system, {"role": "user", "content": parts}]}, PLAN)
    body = json.loads(branches.body(PLAN.subtasks[0], {}))
    assert body["messages"][0] == system
    assert body["messages"][1]["content"][0] == parts[0]
    assert body["messages"][1]["content"][1]["text"].startswith(f"{PLAN.prompt}\n\n[Answer only")
    assert parts[1]["text"] == PLAN.prompt
