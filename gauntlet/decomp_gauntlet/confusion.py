"""Where predictions go wrong: classes and lengths against their labels, and probabilities against what came of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import get_args

from decomp_gauntlet.score import CaseScore
from decomp_router.plan import LENGTH_CLASSES, PlanClass

CLASSES: tuple[str, ...] = get_args(PlanClass)
BINS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999, 1.0)
"""Edges of the reliability diagram: finer where decisions fall."""

Matrix = list[list[int]]


def classes(scores: Iterable[CaseScore]) -> Matrix:
    """[labelled][predicted] counts over CLASSES; cases without labelled sub-tasks are left out."""
    seen = Counter((s.case.cls, s.predicted_cls) for s in scores if s.case.truth is not None)
    return [[seen[labelled, predicted] for predicted in CLASSES] for labelled in CLASSES]


def lengths(scores: Iterable[CaseScore]) -> Matrix:
    """[labelled][predicted] counts of length classes over sub-tasks whose span was found."""
    seen = Counter(pair for s in scores for pair in s.lengths)
    return [[seen[labelled, predicted] for predicted in range(LENGTH_CLASSES)] for labelled in range(LENGTH_CLASSES)]


@dataclass(frozen=True)
class Bin:
    """Cases whose stated chance lies in one range: how many, the mean of what was stated, the share that came true."""

    cases: int
    stated: float
    observed: float


def reliability(scores: Sequence[CaseScore]) -> list[Bin]:
    """The stated chance of a safe fan-out against how often one was expected and not dangerous; empty bins left out."""
    said = [(s.chance, s.case.fanout_expected and not s.dangerous) for s in scores if s.chance is not None]
    found = []
    for low, high in pairwise(BINS):
        inside = [(chance, safe) for chance, safe in said if low <= chance < high or chance == high == 1.0]
        if inside:
            stated = sum(chance for chance, _ in inside) / len(inside)
            found.append(Bin(len(inside), stated, sum(safe for _, safe in inside) / len(inside)))
    return found
