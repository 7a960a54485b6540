"""Thresholds: from a split that training never saw, the best accuracy at a bounded rate of dangerous cases."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from decomp_gauntlet.cases import Case
from decomp_gauntlet.report import Summary, summarise
from decomp_gauntlet.score import CaseScore, score
from decomp_router.decompose.network import Scores
from decomp_router.decompose.reading import Thresholds, read

INDEPENDENT = (0.5, 0.8, 0.9, 0.95)
JOINT = (0.1, 0.2, 0.35, 0.5)
CERTAINTY = (-4.0, -2.0, 0.0, 2.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 16.0, 18.0)


@dataclass(frozen=True)
class Observation:
    """A case and what a network that never saw it says of it."""

    case: Case
    spans: npt.NDArray[np.int64]
    scores: Scores


def scored(observations: Iterable[Observation], thresholds: Thresholds) -> list[CaseScore]:
    """Each observation scored at some thresholds."""
    return [score(o.case, read(o.case.prompt, o.spans, o.scores, thresholds).plan) for o in observations]


def judge(observations: Iterable[Observation], thresholds: Thresholds) -> Summary:
    """The figures of a set of observations at some thresholds."""
    return summarise(scored(observations, thresholds))


def grid() -> list[Thresholds]:
    """All combinations considered."""
    return [Thresholds(*values) for values in product(INDEPENDENT, JOINT, CERTAINTY)]


def choose(summaries: dict[Thresholds, Summary], dangerous_rate: float) -> Thresholds:
    """The highest accuracy among those whose dangerous rate is at most `dangerous_rate` with 95% confidence, or the
    least dangerous."""
    safe = {t: s for t, s in summaries.items() if s.dangerous_upper <= dangerous_rate}
    if safe:
        return max(safe, key=lambda t: (safe[t].accuracy, -safe[t].dangerous))
    return min(summaries, key=lambda t: (summaries[t].dangerous, -summaries[t].accuracy))
