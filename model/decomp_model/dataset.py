"""Cases as tensors: token tags, pairs of spans with their relation, lengths, the guard's answer."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from decomp_gauntlet.cases import Case
from decomp_router.decompose.labels import TAG_INDEX, tag_of
from decomp_router.decompose.tokens import PAD, WINDOW, Encoding, PromptTokenizer, context_of
from decomp_router.plan import Clause, Plan, Subtask

IGNORE = -100
INDEPENDENT, FORWARD, BACKWARD = range(3)
"""Relation of an ordered pair (i, j), i before j in the text: none, j needs i, i needs j."""


@dataclass(frozen=True)
class Example:
    """One case, encoded. Token ranges are positions in `ids` (end exclusive)."""

    ids: list[int]
    layout: list[int]
    tags: list[int]
    tasks: list[tuple[int, int]]
    lengths: list[int]
    pairs: list[tuple[tuple[int, int], tuple[int, int], int]]
    fans_out: bool


def encode(
    case: Case, tokenizer: PromptTokenizer, rng: random.Random | None = None, halve: bool = False
) -> Example | None:
    """A case for training; None if too long. With `rng` spans jitter, and, asked to halve, sub-tasks are split in two
    for the pair head."""
    assert case.truth is not None
    encoding = tokenizer.encode(case.prompt, context_of(case.context))
    if len(encoding.ids) > WINDOW:
        return None
    truth = case.truth
    tags = [IGNORE] * len(encoding.ids)
    tags[1 : len(encoding.spans) + 1] = [TAG_INDEX["none"]] * len(encoding.spans)
    for clause in truth.clauses:
        first, end = _range(encoding, clause)
        tags[first:end] = [TAG_INDEX[tag_of(clause)]] * (end - first)
    tasks = [_range(encoding, task) for task in truth.subtasks]
    for first, end in tasks:
        tags[first:end] = [TAG_INDEX["task-begin"], *[TAG_INDEX["task"]] * (end - first - 1)]
    return Example(
        ids=encoding.ids.tolist(),
        layout=encoding.layout.tolist(),
        tags=tags,
        tasks=tasks,
        lengths=[task.length for task in truth.subtasks],
        pairs=_pairs(truth, tasks, rng, halve),
        fans_out=truth.fans_out,
    )


def _range(encoding: Encoding, span: Subtask | Clause) -> tuple[int, int]:
    """Positions of the tokens that overlap a span; at least one."""
    hit = np.flatnonzero((encoding.spans[:, 0] < span.end) & (encoding.spans[:, 1] > span.start))
    assert len(hit), "a span without a token"
    return int(hit[0]) + 1, int(hit[-1]) + 2


def _pairs(
    truth: Plan, tasks: list[tuple[int, int]], rng: random.Random | None, halve: bool
) -> list[tuple[tuple[int, int], tuple[int, int], int]]:
    ids = [task.id for task in truth.subtasks]
    pairs = []
    for i in range(len(ids)):
        for j in range(i + 1, len(ids)):
            relation = INDEPENDENT
            if truth.closure.has_edge(ids[i], ids[j]):
                relation = FORWARD
            elif truth.closure.has_edge(ids[j], ids[i]):
                relation = BACKWARD
            pairs.append((_jitter(tasks[i], rng), _jitter(tasks[j], rng), relation))
    if rng is not None and halve:
        pairs += [_halves(task, rng) for task in tasks if task[1] - task[0] >= 6 and rng.random() < 0.5]
    return pairs


def _jitter(task: tuple[int, int], rng: random.Random | None) -> tuple[int, int]:
    """A span as a tagger with small errors would see it."""
    first, end = task
    if rng is None or end - first < 5:
        return task
    return first + rng.choice((0, 0, 0, 1)), end - rng.choice((0, 0, 0, 1))


def _halves(task: tuple[int, int], rng: random.Random) -> tuple[tuple[int, int], tuple[int, int], int]:
    """Two pieces of one sub-task must never run apart, should the tagger cut it: the second needs the first."""
    first, end = task
    cut = rng.randrange(first + 3, end - 2)
    return (first, cut), (cut, end), FORWARD


@dataclass(frozen=True)
class Batch:
    """Padded tensors of several examples; spans are [spans, 2] positions in the flattened batch (end exclusive)."""

    ids: Tensor
    layout: Tensor
    tags: Tensor
    guard: Tensor
    tasks: Tensor
    lengths: Tensor
    firsts: Tensor
    seconds: Tensor
    relations: Tensor

    def to(self, device: str) -> Batch:
        """The same on another device."""
        return Batch(*(getattr(self, name).to(device, non_blocking=True) for name in self.__dataclass_fields__))


def collate(examples: Sequence[Example]) -> Batch:
    """Pad to the longest."""
    width = -(-max(len(e.ids) for e in examples) // 16) * 16
    pairs = [(b * width, *pair) for b, e in enumerate(examples) for pair in e.pairs]

    def padded(rows: Sequence[list[int]], fill: int) -> Tensor:
        return torch.tensor([row + [fill] * (width - len(row)) for row in rows])

    def flat(spans: Sequence[tuple[int, tuple[int, int]]]) -> Tensor:
        return torch.tensor([[offset + first, offset + end] for offset, (first, end) in spans]).reshape(-1, 2)

    return Batch(
        ids=padded([e.ids for e in examples], PAD),
        layout=padded([e.layout for e in examples], 0),
        tags=padded([e.tags for e in examples], IGNORE),
        guard=torch.tensor([float(e.fans_out) for e in examples]),
        tasks=flat([(b * width, task) for b, e in enumerate(examples) for task in e.tasks]),
        lengths=torch.tensor([length for e in examples for length in e.lengths]),
        firsts=flat([(offset, first) for offset, first, _, _ in pairs]),
        seconds=flat([(offset, second) for offset, _, second, _ in pairs]),
        relations=torch.tensor([relation for *_, relation in pairs], dtype=torch.long),
    )


def means(spans: Tensor, vectors: Tensor) -> Tensor:
    """Mean over each span: spans [S, 2], vectors [B, L, D] -> [S, D]."""
    flat = vectors.flatten(0, 1)
    place = torch.arange(len(flat), device=flat.device)
    inside = ((place >= spans[:, :1]) & (place < spans[:, 1:])).to(flat.dtype)
    return inside @ flat / (spans[:, 1:] - spans[:, :1])
