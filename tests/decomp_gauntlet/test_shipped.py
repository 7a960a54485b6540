"""The shipped artefact scores on the development set what the model card says."""

from __future__ import annotations

import json
from pathlib import Path

from decomp_gauntlet.cases import load
from decomp_gauntlet.command import judge
from decomp_gauntlet.solvers import InProcess
from decomp_router.decompose import decomposer

ROOT = Path(__file__).parents[2]


def test_the_development_set_is_scored_as_published() -> None:
    """Processors round differently, so a case may tip: within one percent of the published figures."""
    cases = [case for path in sorted((ROOT / "model/corpus/dev").glob("*.jsonl")) for case in load(path)]
    total = judge(InProcess(decomposer.load()), cases).total
    published = json.loads((ROOT / "docs/results/gauntlet-development.json").read_text())["total"]
    assert total.cases == published["cases"]
    assert abs(total.accuracy - published["accuracy"]) <= 0.01
    assert total.dangerous_rate <= 0.01
