"""The certainty a fan-out needs: what it is worth by regression, the threshold by learn-then-test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from decomp_gauntlet.cases import Case
from decomp_gauntlet.report import at_most
from decomp_gauntlet.score import CaseScore, score
from decomp_gauntlet.variants import variants
from decomp_router.decompose.evidence import Evidence
from decomp_router.decompose.reading import Reading, chain
from decomp_router.decompose.thresholds import Thresholds

RATE, CONFIDENCE = 0.005, 0.95
"""Bound on the rate of dangerous cases among those that can go wrong, and how surely it holds."""
VARIANTS = 2
"""Other wordings of each calibration prompt, drawn by code, that must be as safe as the prompt itself."""
PATH = tuple(float(c) for c in np.arange(24.0, -12.0, -0.1).round(1))
"""Certainties in the order in which they are tested: from "never fans out" towards "always"."""
FREE = Thresholds(independent=0.9, joint=0.3, certainty=float("-inf"))
"""Fans out whatever the pairs allow; the two probabilities stay as they are on the whole path."""
_RIDGE = 1.0
_ROUNDS = 30


@dataclass(frozen=True)
class Outcome:
    """One case, read as widely as could be, and with its sub-tasks one after the other."""

    free: CaseScore
    linear: CaseScore
    evidence: Evidence | None

    @property
    def case(self) -> Case:
        """The case."""
        return self.free.case

    def at(self, certainty: float) -> CaseScore:
        """What this case scores where so much certainty is asked for."""
        asked = self.evidence is None or self.evidence.certainty >= certainty
        return self.free if asked else self.linear


def outcomes(cases: Iterable[Case], read_freely: Callable[[Case], Reading]) -> list[Outcome]:
    """Each case read and scored."""
    found = []
    for case in cases:
        reading = read_freely(case)
        found.append(Outcome(score(case, reading.plan), score(case, chain(reading.plan)), reading.evidence))
    return found


def fit_scale(seen: Sequence[Outcome]) -> tuple[float, float]:
    """(slope, offset) of the logistic regression of "not dangerous" on the certainty of all fan-outs: Platt scaling,
    by Newton's method with a ridge on the slope."""
    fanned = [(o.evidence.certainty, not o.free.dangerous) for o in seen if o.evidence and o.free.predicted_fanout]
    x = np.array([(certainty, 1.0) for certainty, _ in fanned])
    safe = np.array([float(fine) for _, fine in fanned])
    ridge = np.diag([_RIDGE, 0.0])
    scale = np.zeros(2)
    for _ in range(_ROUNDS):
        chance = 1 / (1 + np.exp(-x @ scale))
        slope = x.T @ (safe - chance) - ridge @ scale
        curvature = (x.T * (chance * (1 - chance))) @ x + ridge
        scale += np.linalg.solve(curvature, slope)
    return round(float(scale[0]), 4), round(float(scale[1]), 4)


def in_other_clothes(
    cases: Iterable[Case], read_freely: Callable[[Case], Reading], count: int = VARIANTS
) -> list[list[Outcome]]:
    """For each case that can go wrong, it and some metamorphic variants of it: typos, upper case, a pasted text, ..."""
    groups = []
    for number, case in enumerate(cases):
        if case.can_go_wrong:
            worn = [variant for _, variant in variants([case], count, seed=number)]
            groups.append(outcomes([case, *worn], read_freely))
    return groups


def learn_then_test(
    groups: Sequence[Sequence[Outcome]], rate: float = RATE, confidence: float = CONFIDENCE
) -> float | None:
    """The last certainty on PATH before the first that cannot be shown to keep the rate; None if there is none.

    A group is one prompt that can go wrong, in one or more wordings; it counts as dangerous if any of them is.
    Fixed-sequence testing (Angelopoulos et al. 2021, "Learn then Test"): at each certainty, the exact binomial
    p-value of "the rate is above the bound"; testing stops at the first that is not rejected, so the family-wise
    error is at most 1 - confidence.
    """
    chosen = None
    for certainty in PATH:
        dangerous = sum(any(o.at(certainty).dangerous for o in group) for group in groups)
        if at_most(dangerous, len(groups), rate) > 1 - confidence:
            break
        chosen = certainty
    return chosen


def best_recall(seen: Sequence[Outcome], rate: float = RATE) -> tuple[float, float]:
    """(certainty, recall) of the most that can be fanned out at an observed rate within the bound; for comparing
    networks, where no promise is needed."""
    at_risk = [o for o in seen if o.case.can_go_wrong]
    expected = [o for o in seen if o.case.fanout_expected]
    allowed = rate * len(at_risk)
    best = max(c for c in PATH)
    for certainty in PATH:
        if sum(bool(o.at(certainty).dangerous) for o in at_risk) > allowed:
            break
        best = certainty
    return best, sum(not o.at(best).miss for o in expected) / len(expected)


def curve(seen: Sequence[Outcome]) -> npt.NDArray[np.float64]:
    """[len(PATH), 3]: certainty, dangerous rate among the cases that can go wrong, recall."""
    at_risk = [o for o in seen if o.case.can_go_wrong]
    expected = [o for o in seen if o.case.fanout_expected]
    return np.array(
        [
            [
                certainty,
                sum(bool(o.at(certainty).dangerous) for o in at_risk) / len(at_risk),
                sum(not o.at(certainty).miss for o in expected) / len(expected),
            ]
            for certainty in PATH
        ]
    )
