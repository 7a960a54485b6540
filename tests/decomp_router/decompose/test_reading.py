"""From scores to plans: doubt always ends in order, never in a fan-out."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decomp_router.decompose.reading import Reading, chain, read
from decomp_router.decompose.thresholds import Thresholds
from decomp_router.plan import Plan
from tests.decomp_router.decompose.scripted import SURE, scores, word_spans

THRESHOLDS = Thresholds(independent=0.9, joint=0.3, certainty=8.0)
PROMPT = "sum up A , do B , compare them please"


def reading(letters: str, needs: dict[tuple[int, int], float] | None = None, guard: float = SURE) -> Reading:
    return read(PROMPT, word_spans(PROMPT), scores(letters, needs, guard), THRESHOLDS)


def shape(plan: Plan) -> dict[str, tuple[str, ...]]:
    return {plan.text(task): task.deps for task in plan.subtasks}


def test_independent_tasks_stay_apart() -> None:
    found = reading("Btt.Bt....")
    assert shape(found.plan) == {"sum up A": (), "do B": ()}
    assert found.reason == "2 independent sub-tasks"
    assert found.plan.subtasks[0].length == 2


def test_a_fan_in_is_read() -> None:
    found = reading("Btt.Bt.Bt.", {(0, 2): SURE, (1, 2): SURE})
    assert shape(found.plan) == {"sum up A": (), "do B": (), "compare them": ("t1", "t2")}
    assert found.plan.cls == "mixed"


def test_a_dependency_may_point_backwards() -> None:
    assert shape(reading("Btt.Bt....", {(1, 0): SURE}).plan) == {"sum up A": ("t2",), "do B": ()}


def test_only_direct_parents_are_kept() -> None:
    found = reading("Btt.Bt.Bt.", {(0, 1): SURE, (1, 2): SURE, (0, 2): SURE})
    assert shape(found.plan)["compare them"] == ("t2",)


def test_uncertain_means_dependent() -> None:
    found = reading("Btt.Bt....", {(0, 1): -1.5})  # p(independent) = 0.82 < 0.9
    assert shape(found.plan) == {"sum up A": (), "do B": ("t1",)}
    assert found.reason == "independence of t1 and t2 is uncertain (p=0.82)"


def test_a_joint_constraint_serialises() -> None:
    found = reading("Btt.Bt.jjj")
    assert found.plan.cls == "dependent"
    assert found.plan.clauses[0].target == "joint"
    assert "ties the parts" in found.reason


def test_a_constraint_on_each_part_does_not() -> None:
    found = reading("Btt.Bt.eee")
    assert found.plan.cls == "parallel"
    assert found.plan.clauses[0].target == "each"


def test_a_constraint_binds_the_task_before_it() -> None:
    prompt = "sum up A . do B : use few words"
    found = read(prompt, word_spans(prompt), scores("Btt.Bt.111"), THRESHOLDS)
    assert [(prompt[c.start : c.end], c.target) for c in found.plan.clauses] == [("use few words", "t2")]


def test_an_ask_holds_its_own_conditions_to_the_end_of_its_sentence() -> None:
    """An ask cut off before "given that my dad is 81" once left its condition, and half of its words, outside."""
    prompt = "sum up A , do B since it rains ."
    found = read(prompt, word_spans(prompt), scores("Btt.Btccc."), THRESHOLDS)
    assert list(shape(found.plan)) == ["sum up A", "do B since it rains"]
    assert found.plan.clauses == ()
    after = read(prompt, word_spans(prompt), scores("Btt.Btddd."), THRESHOLDS)
    assert list(shape(after.plan)) == ["sum up A", "do B"]


def test_a_doubtful_guard_serialises() -> None:
    found = reading("Btt.Bt....", guard=-4.0)  # the pair adds 11.3
    assert found.plan.cls == "dependent"
    assert "not sure enough" in found.reason


def test_edges_in_a_circle_become_a_chain() -> None:
    found = reading("Btt.Bt.Bt.", {(0, 1): SURE, (1, 2): SURE, (2, 0): SURE})
    assert shape(found.plan) == {"sum up A": (), "do B": ("t1",), "compare them": ("t2",)}


def test_a_stray_untagged_word_does_not_cut_a_task() -> None:
    assert list(shape(reading("Btt.tt.Bt.").plan)) == ["sum up A , do B", "compare them"]


def test_a_single_ask_is_cut_out_only_where_it_is_sure() -> None:
    assert shape(reading("ccc.Bttttt").plan) == {"do B , compare them please": ()}
    assert shape(reading("ccc.Bt.tt.").plan) == {PROMPT: ()}


def test_no_task_found_means_the_whole_prompt() -> None:
    assert shape(reading("cccccccccc").plan) == {PROMPT: ()}


def test_other_roles_become_clauses() -> None:
    roles = [(clause.role, clause.target) for clause in reading("gpcdmBttt.").plan.clauses]
    assert roles == [("greeting", None), ("persona", None), ("context", None), ("pasted", None), ("meta", None)]


def test_a_chain_keeps_every_edge() -> None:
    free = reading("Btt.Bt.Bt.", {(2, 0): SURE}).plan
    ordered = chain(free)
    assert ordered.width == 1
    assert ordered.closure.has_edge("t3", "t1")


@pytest.mark.parametrize("value", [-0.1, 1.1])
def test_thresholds_are_probabilities(value: float) -> None:
    with pytest.raises(AssertionError):
        Thresholds(independent=value, joint=0.5, certainty=0.0)


LOGITS = st.floats(-80, 80)


@given(
    st.text("Btcpejdgm.1", min_size=10, max_size=10).filter(lambda s: not re.search("(?<![Bt])t", s)),
    st.dictionaries(st.tuples(st.integers(0, 9), st.integers(0, 9)), LOGITS),
    LOGITS,
)
def test_whatever_the_scores_the_plan_holds_and_concurrency_was_earned(
    letters: str, needs: dict[tuple[int, int], float], guard: float
) -> None:
    plan = reading(letters, needs, guard).plan
    if not plan.fans_out:
        return
    for i, a in enumerate(plan.subtasks):
        for j, b in enumerate(plan.subtasks[i + 1 :], i + 1):
            if plan.concurrent(a.id, b.id):
                forward, backward = needs.get((i, j), -SURE), needs.get((j, i), -SURE)
                assert 1 / (1 + math.exp(forward) + math.exp(backward)) >= THRESHOLDS.independent - 1e-6
                assert guard - math.log(math.exp(forward) + math.exp(backward)) >= THRESHOLDS.certainty - 1e-4


def test_tokens_that_share_a_character_stay_together() -> None:
    """An ellipsis is three tokens of one character; a cut between them made sub-tasks overlap."""
    prompt = "do A… do B"
    spans = np.array([[0, 2], [3, 4], [4, 5], [4, 5], [6, 8], [9, 10]])
    plan = read(prompt, spans, scores("BttBBt"), THRESHOLDS).plan
    assert [plan.text(task) for task in plan.subtasks] == ["do A…", "do B"]
