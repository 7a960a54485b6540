"""Thresholds are chosen for safety first."""

from __future__ import annotations

from dataclasses import replace

from decomp_gauntlet.cases import from_json
from decomp_gauntlet.report import Summary, summarise
from decomp_gauntlet.score import score
from decomp_model.calibrate import choose
from decomp_router.decompose.reading import Thresholds
from decomp_router.plan import Plan

LAX, STRICT, STRICTER = (Thresholds(0.9, 0.3, certainty) for certainty in (0.0, 5.0, 9.0))


def summary(accuracy: float, dangerous: int, upper: float) -> Summary:
    case = from_json({"id": "x", "lang": "en", "prompt": "ask", "subtasks": [{"id": "a", "quote": "ask"}]})
    base = summarise([score(case, Plan.atomic("ask"))])
    return replace(base, accuracy=accuracy, dangerous=dangerous, dangerous_upper=upper)


def test_the_most_accurate_of_the_safe_ones_is_chosen() -> None:
    found = {LAX: summary(0.9, 9, 0.03), STRICT: summary(0.8, 1, 0.009), STRICTER: summary(0.7, 0, 0.005)}
    assert choose(found, dangerous_rate=0.01) == STRICT


def test_where_none_is_safe_the_least_dangerous_is_chosen() -> None:
    found = {LAX: summary(0.9, 9, 0.03), STRICT: summary(0.8, 2, 0.02), STRICTER: summary(0.7, 2, 0.02)}
    assert choose(found, dangerous_rate=0.01) == STRICT
