"""The body of POST /decompose."""

from __future__ import annotations

import json
from pathlib import Path

from decomp_router.decompose.reading import Reading
from decomp_router.decompose.response import SCHEMA, response
from decomp_router.plan import Clause, Plan, Subtask


def test_a_mixed_plan_as_json() -> None:
    prompt = "do A, do B, compare. short!"
    plan = Plan(
        prompt,
        (Subtask("t1", 0, 4, (), 2), Subtask("t2", 6, 10, (), 2), Subtask("t3", 12, 19, ("t1", "t2"), 1)),
        (Clause(21, 27, "constraint", "each"),),
    )
    body = response(Reading(plan, "2 independent sub-tasks"), 12.3456)
    assert body == {
        "subtasks": [
            {"id": "t1", "text": "do A", "start": 0, "end": 4, "deps": [], "length": 2},
            {"id": "t2", "text": "do B", "start": 6, "end": 10, "deps": [], "length": 2},
            {"id": "t3", "text": "compare", "start": 12, "end": 19, "deps": ["t1", "t2"], "length": 1},
        ],
        "clauses": [{"start": 21, "end": 27, "role": "constraint", "target": "each"}],
        "cls": "mixed",
        "fanout": True,
        "recommend": True,
        "maxWidth": 2,
        "reason": "2 independent sub-tasks",
        "ms": 12.346,
    }


def test_an_empty_prompt_has_no_subtasks() -> None:
    body = response(Reading(Plan.atomic(""), "an empty prompt"), 0.0)
    assert (body["subtasks"], body["maxWidth"], body["fanout"], body["cls"]) == ([], 0, False, "atomic")


def test_the_published_schema_is_the_one_in_use() -> None:
    published = Path(__file__).parents[3] / "docs/decompose.schema.json"
    assert json.loads(published.read_text(encoding="utf-8")) == SCHEMA
