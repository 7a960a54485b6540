"""A plan and the load to a decision."""

from __future__ import annotations

import pytest

from decomp_router.gate.decide import Policy, crowded, decide, room
from decomp_router.plan import Plan
from tests.decomp_router.fakes import plan_of

THREE = plan_of("Write a story.", "Explain tides.", "Compare two cities.")


def test_independent_long_tasks_fan_out() -> None:
    decision = decide(THREE, "3 independent sub-tasks", idle_slots=4, policy=Policy())
    assert decision.mode == "fanout"
    assert decision.reasons == ("3 independent sub-tasks", "3 at a time, 4 slots idle")


def test_width_is_capped_by_idle_slots_and_policy() -> None:
    assert "2 at a time" in decide(THREE, "r", 2, Policy()).reasons[1]
    assert "2 at a time" in decide(THREE, "r", 8, Policy(max_width=2)).reasons[1]
    assert room(3, Policy(max_width=2)) == 2
    assert room(0, Policy()) == 1


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        (Plan.atomic("Write a story."), "r"),
        (plan_of("Write a story.", "Sum it up.", deps={2: [1]}), "r"),
        (plan_of("Name one.", "Name two.", length=1), "length class 2"),
    ],
)
def test_plans_that_stay_linear(plan: Plan, reason: str) -> None:
    decision = decide(plan, "r", 4, Policy())
    assert decision.mode == "linear"
    assert reason in decision.reasons[-1]


def test_the_owner_may_ask_for_less_length() -> None:
    short = plan_of("Name one.", "Name two.", length=1)
    assert decide(short, "r", 4, Policy(min_length=1)).mode == "fanout"


def test_the_long_tasks_must_be_concurrent_themselves() -> None:
    chain = plan_of("Write a story.", "Sum it up at length.", deps={2: [1]})
    assert decide(chain, "r", 4, Policy(min_length=0)).mode == "linear"


def test_an_answer_capped_below_what_the_parts_promise_stays_linear() -> None:
    """A cap of one section's length once let the first section crowd out all others."""
    tight = decide(THREE, "r", 4, Policy(), token_limit=480)
    assert (tight.mode, tight.reasons[-1]) == ("linear", "the parts promise about 840 tokens, at most 480 are wanted")
    assert decide(THREE, "r", 4, Policy(), token_limit=840).mode == "fanout"


def test_a_busy_engine_is_left_alone() -> None:
    assert decide(THREE, "r", 1, Policy()).reasons[-1] == "1 slot idle"
    assert crowded(0, Policy()) == "0 slots idle"
    assert crowded(4, Policy(max_width=1)) == "the width is limited to 1"
    assert crowded(2, Policy()) is None
