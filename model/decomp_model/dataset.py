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


Span = tuple[int, int]
Pair = tuple[Span, Span, int]


@dataclass(frozen=True)
class Example:
    """One case, encoded. Token ranges are positions in `ids` (end exclusive)."""

    ids: list[int]
    layout: list[int]
    tags: list[int]
    tasks: list[Span]
    lengths: list[int]
    pairs: list[Pair]
    """First those of labelled sub-tasks, then those that must never count as independent."""
    labelled_pairs: int
    fans_out: bool


def encode(case: Case, tokenizer: PromptTokenizer, rng: random.Random | None = None) -> Example | None:
    """A case for training; None if too long. With `rng` spans jitter, and what a tagger could mistake for sub-tasks
    joins the pairs."""
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
    pairs = _pairs(truth, tasks, rng)
    clauses = [_range(encoding, clause) for clause in truth.clauses]
    return Example(
        ids=encoding.ids.tolist(),
        layout=encoding.layout.tolist(),
        tags=tags,
        tasks=tasks,
        lengths=[task.length for task in truth.subtasks],
        pairs=pairs if rng is None else pairs + _mistaken(tasks, clauses, rng),
        labelled_pairs=len(pairs),
        fans_out=truth.fans_out,
    )


def _range(encoding: Encoding, span: Subtask | Clause) -> tuple[int, int]:
    """Positions of the tokens that overlap a span; at least one."""
    hit = np.flatnonzero((encoding.spans[:, 0] < span.end) & (encoding.spans[:, 1] > span.start))
    assert len(hit), "a span without a token"
    return int(hit[0]) + 1, int(hit[-1]) + 2


def _pairs(truth: Plan, tasks: list[Span], rng: random.Random | None) -> list[Pair]:
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
    return pairs


def _mistaken(tasks: list[Span], clauses: list[Span], rng: random.Random) -> list[Pair]:
    """Pieces that must never run apart, should the tagger take them for sub-tasks: halves of one, and other text
    beside one."""
    found = [_halves(task, rng) for task in tasks if task[1] - task[0] >= 6 and rng.random() < 0.25]
    if clauses and rng.random() < 0.6:
        stray, task = _part(rng.choice(clauses), rng), rng.choice(tasks)
        if stray[1] - stray[0] >= 3:
            found.append((min(stray, task), max(stray, task), FORWARD))
    return found


def _part(clause: Span, rng: random.Random) -> Span:
    """The whole clause, or some 4 to 20 tokens of it."""
    first, end = clause
    length = rng.randint(4, 20)
    if end - first <= length or rng.random() < 0.4:
        return clause
    start = rng.randrange(first, end - length)
    return start, start + length


def _jitter(task: Span, rng: random.Random | None) -> Span:
    """A span as a tagger with small errors would see it."""
    first, end = task
    if rng is None or end - first < 5:
        return task
    return first + rng.choice((0, 0, 0, 1)), end - rng.choice((0, 0, 0, 1))


def _halves(task: Span, rng: random.Random) -> Pair:
    """Two pieces of one sub-task: the second needs the first."""
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
    labelled: Tensor
    """[pairs] bool: a pair of labelled sub-tasks."""

    def to(self, device: str) -> Batch:
        """The same on another device."""
        return Batch(*(getattr(self, name).to(device, non_blocking=True) for name in self.__dataclass_fields__))


def collate(examples: Sequence[Example]) -> Batch:
    """Pad to the longest."""
    width = -(-max(len(e.ids) for e in examples) // 16) * 16
    pairs = [(b * width, *pair) for b, e in enumerate(examples) for pair in e.pairs]

    def padded(rows: Sequence[list[int]], fill: int) -> Tensor:
        return torch.tensor([row + [fill] * (width - len(row)) for row in rows])

    def flat(spans: Sequence[tuple[int, Span]]) -> Tensor:
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
        labelled=torch.tensor([i < e.labelled_pairs for e in examples for i in range(len(e.pairs))], dtype=torch.bool),
    )


def means(spans: Tensor, vectors: Tensor) -> Tensor:
    """Mean over each span: spans [S, 2], vectors [B, L, D] -> [S, D]."""
    flat = vectors.flatten(0, 1)
    place = torch.arange(len(flat), device=flat.device)
    inside = ((place >= spans[:, :1]) & (place < spans[:, 1:])).to(flat.dtype)
    return inside @ flat / (spans[:, 1:] - spans[:, :1])
