"""The request of each branch: the whole conversation, and which part of it to answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from decomp_router.execute.instruction import instruction
from decomp_router.execute.merge import SEPARATOR
from decomp_router.plan import Plan, Subtask

_OWN = ("stop", "stream", "stream_options")
"""Fields that hold for the merged answer and not for a branch: stop strings are looked for in merged order."""


class Branches:
    """Builds the bodies of a plan's branches from the client's own request."""

    def __init__(self, body: Mapping[str, Any], plan: Plan) -> None:
        self._messages: list[dict[str, Any]] = body["messages"]
        self._rest = {name: value for name, value in body.items() if name not in (*_OWN, "messages")}
        self._plan = plan

    def ancestors(self, task: Subtask) -> list[str]:
        """Ids of the sub-tasks whose answers a branch needs, in prompt order.

        All of them, for the plan's edges are reduced: a parent's own parents are needed just as well.
        """
        needed = set(self._plan.closure.predecessors(task.id))
        return [other.id for other in self._plan.subtasks if other.id in needed]

    def body(self, task: Subtask, answers: Mapping[str, str]) -> bytes:
        """The request of one branch, as JSON; `answers` holds those of its ancestors."""
        sentence = instruction(self._plan.prompt, self._plan.text(task))
        before = [answers[name] for name in self.ancestors(task)]
        fields = {
            **self._rest,
            "messages": self._follow_up(sentence, before) if before else self._opening(sentence),
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        return json.dumps(fields).encode()

    def _opening(self, sentence: str) -> list[dict[str, Any]]:
        """The instruction inside the last user message: strict templates reject two user turns in a row."""
        *earlier, last = self._messages
        return [*earlier, {**last, "content": _extended(last["content"], sentence)}]

    def _follow_up(self, sentence: str, before: list[str]) -> list[dict[str, Any]]:
        said = {"role": "assistant", "content": SEPARATOR.join(before)}
        return [*self._messages, said, {"role": "user", "content": sentence}]


def _extended(content: str | list[dict[str, Any]], sentence: str) -> str | list[dict[str, Any]]:
    if isinstance(content, str):
        return f"{content}\n\n{sentence}"
    *parts, last = content
    return [*parts, {**last, "text": f"{last['text']}\n\n{sentence}"}]
