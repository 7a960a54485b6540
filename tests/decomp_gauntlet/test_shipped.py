"""The shipped artefact scores on the shipped sets what is published, and stays safe in other clothes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from decomp_gauntlet.cases import load
from decomp_gauntlet.command import judge
from decomp_gauntlet.sets import FOLDER
from decomp_gauntlet.solvers import InProcess
from decomp_gauntlet.variants import variants
from decomp_router.decompose import decomposer

RESULTS = Path(__file__).parents[2] / "docs/results"
TIPPING = 0.01
"""Processors round differently, so a case may tip."""


@pytest.mark.parametrize("name", ["test", "adversarial"])
def test_a_shipped_set_is_scored_as_published(name: str) -> None:
    total = judge(InProcess(decomposer.load()), load(FOLDER / f"{name}.jsonl")).total
    published = json.loads((RESULTS / f"gauntlet-{name}.json").read_text())["total"]
    assert total.cases == published["cases"]
    assert abs(total.accuracy - published["accuracy"]) <= TIPPING
    assert total.dangerous_rate <= published["dangerous_rate"] + TIPPING / 2


def test_variants_rarely_turn_dangerous() -> None:
    pairs = list(variants(load(FOLDER / "test.jsonl"), 200))
    report = judge(InProcess(decomposer.load()), [variant for _, variant in pairs])
    assert len(report.dangerous) <= 1
