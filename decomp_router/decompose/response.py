"""The body of POST /decompose, and its JSON schema."""

from __future__ import annotations

from typing import Any

from decomp_router.decompose.reading import Reading


def response(reading: Reading, ms: float) -> dict[str, Any]:
    """A reading as JSON; offsets are Unicode code points of the prompt, end exclusive.

    `recommend` goes by rule: two concurrent sub-tasks of length class 2 or more.
    """
    plan = reading.plan
    return {
        "subtasks": [
            {"id": t.id, "text": plan.text(t), "start": t.start, "end": t.end, "deps": list(t.deps), "length": t.length}
            for t in plan.subtasks
        ],
        "clauses": [{"start": c.start, "end": c.end, "role": c.role, "target": c.target} for c in plan.clauses],
        "cls": plan.cls,
        "fanout": plan.fans_out,
        "recommend": plan.substantial,
        "maxWidth": plan.width,
        "reason": reading.reason,
        "ms": round(ms, 3),
    }


_SPAN = {"start": {"type": "integer", "minimum": 0}, "end": {"type": "integer", "minimum": 1}}

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "POST /decompose response",
    "type": "object",
    "additionalProperties": False,
    "required": ["subtasks", "clauses", "cls", "fanout", "recommend", "maxWidth", "reason", "ms"],
    "properties": {
        "subtasks": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["id", "text", "start", "end", "deps", "length"],
                "properties": {
                    "id": {"type": "string"},
                    "text": {"type": "string"},
                    **_SPAN,
                    "deps": {"type": "array", "items": {"type": "string"}},
                    "length": {"type": "integer", "minimum": 0, "maximum": 3},
                },
            },
        },
        "clauses": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["start", "end", "role", "target"],
                "properties": {
                    **_SPAN,
                    "role": {"enum": ["context", "persona", "constraint", "pasted", "greeting", "meta"]},
                    "target": {"type": ["string", "null"], "description": "a sub-task id, 'each' or 'joint'"},
                },
            },
        },
        "cls": {"enum": ["atomic", "parallel", "dependent", "mixed"]},
        "fanout": {"type": "boolean"},
        "recommend": {"type": "boolean"},
        "maxWidth": {"type": "integer", "minimum": 0},
        "reason": {"type": "string"},
        "ms": {"type": "number", "minimum": 0},
    },
}
