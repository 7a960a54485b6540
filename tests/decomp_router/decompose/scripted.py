"""A scripted network: one token a word, tags spelled out, chosen pair logits."""

from __future__ import annotations

import numpy as np

from decomp_router.decompose.labels import TAG_INDEX, TAGS, Tag
from decomp_router.decompose.network import Scores
from decomp_router.decompose.tokens import Ids
from decomp_router.plan import LENGTH_CLASSES

SURE = 12.0
LETTERS: dict[str, Tag] = {
    ".": "none", "B": "task-begin", "t": "task", "c": "context", "p": "persona", "1": "constraint-one",
    "e": "constraint-each", "j": "constraint-joint", "d": "pasted", "g": "greeting", "m": "meta",
}  # fmt: skip


def word_spans(prompt: str) -> Ids:
    """[words, 2] spans of the blank-separated words."""
    spans, position = [], 0
    for word in prompt.split():
        start = prompt.index(word, position)
        position = start + len(word)
        spans.append((start, position))
    return np.asarray(spans, np.int64).reshape(-1, 2)


def scores(letters: str, needs: dict[tuple[int, int], float] | None = None, guard: float = SURE) -> Scores:
    """One letter a word (see LETTERS); `needs[i, j]`: logit that task j needs task i, else -SURE."""
    length = len(letters) + 2
    tags = np.zeros((length, len(TAGS)), np.float32)
    for position, letter in enumerate(letters, 1):
        tags[position, TAG_INDEX[LETTERS[letter]]] = SURE
    tasks = _task_positions(letters)
    size = max(len(tasks), 1)
    parents, children = np.zeros((length, size), np.float32), np.zeros((length, size), np.float32)
    for i, positions in enumerate(tasks):
        for j in range(len(tasks)):
            parents[positions, j] = (needs or {}).get((i, j), -SURE)
        children[positions, i] = 1.0
    lengths = np.zeros((length, LENGTH_CLASSES), np.float32)
    lengths[:, 2] = 1.0
    return Scores(tags, parents, children, lengths, guard)


def _task_positions(letters: str) -> list[list[int]]:
    found: list[list[int]] = []
    for position, letter in enumerate(letters, 1):
        if letter == "B":
            found.append([position])
        elif letter == "t":
            found[-1].append(position)
    return found


class ScriptedNetwork:
    """Answers each pass with the next of its scores; keeps what it was asked."""

    def __init__(self, *answers: Scores) -> None:
        self._answers = list(answers)
        self.asked: list[tuple[Ids, Ids]] = []

    def run(self, ids: Ids, layout: Ids) -> Scores:
        self.asked.append((ids, layout))
        return self._answers.pop(0)
