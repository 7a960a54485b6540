"""Whether a section goes on to answer a part that belongs to another branch."""

from __future__ import annotations

import re
from collections.abc import Sequence

_WORD = re.compile(r"\w+")
_LEAST_WORDS = 3
"""Shorter tasks are too easily met by chance."""
_RESTATED = 0.8
"""Share of a task's words that a line must hold to count as that task's heading or restatement."""
_LONGEST = 2
"""A line this many times longer than the task is an answer that mentions it, not a heading."""


class OverAnswer:
    """Finds the line where a section restates a sibling's task, the sign that it goes on to answer it.

    Words are compared, so it holds for any language that writes spaces; one that paraphrases goes unseen.
    """

    def __init__(self, own: str, siblings: Sequence[str]) -> None:
        self._own = _words(own)
        self._siblings = [words for text in siblings if len(words := _words(text)) >= _LEAST_WORDS]

    def find(self, text: str) -> int | None:
        """Where in a section's text the first such line starts, or None."""
        start = 0
        for line in text.splitlines(keepends=True):
            if self._restates(_WORD.findall(line.casefold())):
                return start
            start += len(line)
        return None

    def _restates(self, line: list[str]) -> bool:
        words = set(line)
        own = _share(self._own, words)
        return any(
            len(line) <= _LONGEST * len(task) and _RESTATED <= _share(task, words) > own for task in self._siblings
        )


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def _share(task: set[str], line: set[str]) -> float:
    return len(task & line) / len(task) if task else 0.0
