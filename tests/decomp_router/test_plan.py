"""The domain's invariants and graph figures."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decomp_router.plan import Clause, Decision, Plan, Subtask

PROMPT = "abcdefghijklmnopqrstuvwxyz"


def plan(*deps: str, lengths: str = "") -> Plan:
    """Sub-tasks a, b, c ... one character each; deps[i] names the parents of the i-th."""
    return Plan(
        PROMPT,
        tuple(
            Subtask(PROMPT[i], 2 * i, 2 * i + 1, tuple(parents), int(lengths[i]) if lengths else 1)
            for i, parents in enumerate(deps)
        ),
    )


@pytest.mark.parametrize(
    ("deps", "cls", "width"),
    [
        ((), "atomic", 0),
        (("",), "atomic", 1),
        (("", ""), "parallel", 2),
        (("", "a"), "dependent", 1),
        (("b", ""), "dependent", 1),
        (("", "", "ab"), "mixed", 2),
        (("", "a", "a"), "mixed", 2),
        (("", "a", "", "c"), "mixed", 2),
        (("", "a", "ab"), "dependent", 1),
        (("", "", "", "abc"), "mixed", 3),
    ],
)
def test_class_and_width_follow_from_the_dag(deps: tuple[str, ...], cls: str, width: int) -> None:
    found = plan(*deps)
    assert (found.cls, found.width, found.fans_out) == (cls, width, width >= 2)


def test_a_circle_is_refused() -> None:
    with pytest.raises(AssertionError, match="circle"):
        plan("b", "a")


@pytest.mark.parametrize(
    ("subtasks", "reason"),
    [
        ((Subtask("a", 0, 3), Subtask("a", 4, 5)), "repeat"),
        ((Subtask("a", 0, 3), Subtask("b", 2, 5)), "overlap"),
        ((Subtask("b", 0, 3, ("x",)),), "unknown"),
        ((Subtask("a", 0, 99),), "leaves the prompt"),
    ],
)
def test_broken_plans_are_refused(subtasks: tuple[Subtask, ...], reason: str) -> None:
    with pytest.raises(AssertionError, match=reason):
        Plan(PROMPT, subtasks)


def test_only_a_constraint_has_a_target() -> None:
    with pytest.raises(AssertionError, match="target"):
        Clause(0, 1, "context", "each")


def test_substantial_needs_two_long_answers_at_the_same_time() -> None:
    assert plan("", "", lengths="22").substantial
    assert not plan("", "", lengths="21").substantial
    assert not plan("", "a", lengths="33").substantial


def test_an_atomic_plan_spans_the_stripped_prompt() -> None:
    found = Plan.atomic("  hi there \n")
    assert found.text(found.subtasks[0]) == "hi there"
    assert Plan.atomic(" \n").subtasks == ()


def test_a_decision_to_fan_out_needs_a_plan_that_does() -> None:
    with pytest.raises(AssertionError, match="concurrent"):
        Decision("fanout", ("why not",), plan("", "a"))
    assert Decision("fanout", ("two parts",), plan("", "")).width == 2
    assert Decision("linear", ("two parts, no idle slot",), plan("", "")).width == 1


@st.composite
def random_plans(draw: st.DrawFn) -> Plan:
    count = draw(st.integers(0, 7))
    parents = [draw(st.sets(st.integers(0, i - 1))) if i else set() for i in range(count)]
    return plan(*("".join(PROMPT[p] for p in sorted(found)) for found in parents))


@given(random_plans())
def test_width_is_the_largest_set_of_pairwise_concurrent_subtasks(found: Plan) -> None:
    ids = [task.id for task in found.subtasks]
    largest = max(
        (
            size
            for size in range(len(ids) + 1)
            for group in combinations(ids, size)
            if all(found.concurrent(a, b) for a, b in combinations(group, 2))
        ),
        default=0,
    )
    assert found.width == largest
