"""Thresholds are chosen by a stated procedure, and only as far as the bound can be shown."""

from __future__ import annotations

import math
import random

import pytest

from decomp_gauntlet.cases import Case, from_json
from decomp_gauntlet.report import at_most
from decomp_gauntlet.score import score
from decomp_model.calibrate import (
    PATH,
    VARIANTS,
    Outcome,
    best_recall,
    curve,
    fit_scale,
    in_other_clothes,
    learn_then_test,
    outcomes,
)
from decomp_router.decompose.evidence import Evidence
from decomp_router.decompose.reading import Reading, chain
from decomp_router.plan import Plan, Subtask


def case(dependent: bool) -> Case:
    deps = ["a"] if dependent else []
    tasks = [{"id": "a", "quote": "one"}, {"id": "b", "quote": "two", "deps": deps}]
    return from_json({"id": "x", "lang": "en", "prompt": "one two", "subtasks": tasks})


SPLIT = Plan("one two", (Subtask("a", 0, 3), Subtask("b", 4, 7)))


def outcome(dependent: bool, certainty: float | None) -> Outcome:
    """A case that would be split from a certainty down; None: never."""
    found = case(dependent)
    evidence = None if certainty is None else Evidence(guard=certainty, weakest=50.0, faintest=50.0)
    free = SPLIT if certainty is not None else chain(SPLIT)
    return Outcome(score(found, free), score(found, chain(SPLIT)), evidence)


SERIAL = [outcome(True, None)] * 1000


def alone(seen: list[Outcome]) -> list[list[Outcome]]:
    """Each in one wording, those that can go wrong."""
    return [[o] for o in seen if o.case.can_go_wrong]


def test_certainty_decides_between_the_two_readings() -> None:
    doubtful = outcome(True, 3.0)
    assert doubtful.at(3.0).dangerous
    assert not doubtful.at(3.1).dangerous


def test_testing_stops_where_the_rate_can_no_longer_be_shown() -> None:
    """Of 1,000 serial cases one dangerous is 0.5% with 96% confidence, two are not."""
    seen = [*SERIAL, outcome(True, 9.0), outcome(True, 6.0), outcome(False, 8.0)]
    assert at_most(1, 1002, 0.005) <= 0.05 < at_most(2, 1002, 0.005)
    assert learn_then_test(alone(seen)) == pytest.approx(6.1)


def test_too_few_cases_show_nothing() -> None:
    assert learn_then_test(alone(SERIAL[:500])) is None


def test_without_a_danger_the_whole_path_is_walked() -> None:
    assert learn_then_test(alone([*SERIAL, outcome(False, -30.0)])) == PATH[-1]


def test_a_prompt_is_as_dangerous_as_its_worst_wording() -> None:
    safe, doubtful = outcome(True, None), outcome(True, 9.0)
    once = [*alone(SERIAL), [safe, doubtful], [doubtful, doubtful]]
    assert learn_then_test(once) == pytest.approx(9.1)


def test_other_wordings_are_read_too_where_things_can_go_wrong() -> None:
    asked: list[str] = []

    def read(found: Case) -> Reading:
        asked.append(found.prompt)
        return Reading(Plan.atomic(found.prompt), "")

    groups = in_other_clothes([case(True), case(False)], read)
    assert [len(group) for group in groups] == [1 + VARIANTS]
    assert asked[0] == "one two"
    assert len(asked) == 1 + VARIANTS
    assert "one two" not in asked[1:]


def test_networks_are_compared_at_the_observed_rate() -> None:
    seen = [*SERIAL, *[outcome(True, 5.0)] * 9, outcome(False, 8.0), outcome(False, 4.0)]
    certainty, recall = best_recall(seen)
    assert (certainty, recall) == (pytest.approx(5.1), 0.5)
    assert curve(seen)[0].tolist() == [PATH[0], 0.0, 0.0]


def test_the_scale_gives_the_observed_odds() -> None:
    """Certainties drawn so that the true log-odds of a safe fan-out are 0.5 x certainty - 1."""
    rng = random.Random(0)
    seen = []
    for _ in range(4000):
        certainty = rng.uniform(-4, 8)
        safe = rng.random() < 1 / (1 + math.exp(1 - 0.5 * certainty))
        seen.append(outcome(not safe, certainty))
    slope, offset = fit_scale(seen)
    assert slope == pytest.approx(0.5, abs=0.06)
    assert offset == pytest.approx(-1.0, abs=0.2)


def test_outcomes_hold_the_fan_out_and_its_chain() -> None:
    reading = Reading(SPLIT, "", Evidence(guard=1.0, weakest=2.0, faintest=3.0))
    (found,) = outcomes([case(True)], lambda _: reading)
    assert found.free.dangerous
    assert not found.linear.dangerous
    assert found.evidence == Evidence(guard=1.0, weakest=2.0, faintest=3.0)
