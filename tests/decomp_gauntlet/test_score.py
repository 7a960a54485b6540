"""The rules of docs/gauntlet-format.md, one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decomp_gauntlet.cases import Case
from decomp_gauntlet.report import summarise, upper_bound
from decomp_gauntlet.score import assign, score
from decomp_gauntlet.solvers import AlwaysChain, NeverSplit
from decomp_router.plan import Plan, Subtask

PROMPT = "aaaaaaaaaa bbbbbbbbbb cccccccccc dddddddddd"


def plan(deps: dict[str, str], spans: dict[str, tuple[int, int]] | None = None) -> Plan:
    """Sub-task `x` covers the run of that letter unless `spans` says otherwise."""
    places = {letter: (PROMPT.index(letter), PROMPT.rindex(letter) + 1) for letter in "abcd"} | (spans or {})
    found = [Subtask(name, *places[name], tuple(parents)) for name, parents in deps.items()]
    return Plan(PROMPT, tuple(sorted(found, key=lambda task: task.start)))


def case(deps: dict[str, str]) -> Case:
    truth = plan(deps)
    return Case("x", "en", PROMPT, truth.fans_out, truth)


def test_the_right_plan_is_accurate() -> None:
    found = score(case({"a": "", "b": "", "c": "ab"}), plan({"a": "", "b": "", "c": "ab"}))
    assert found.accurate
    assert (found.edges.f1, found.spans.f1) == (1.0, 1.0)
    assert (found.dangerous, found.miss, found.reversed_pairs, found.dropped) == ((), False, 0, 0)


def test_rule_a_fanning_out_a_serial_prompt_is_dangerous() -> None:
    assert score(case({"a": ""}), plan({"a": "", "b": ""})).dangerous == ("fans out a prompt that must not",)


def test_rule_b_dependent_quotes_on_concurrent_nodes_are_dangerous() -> None:
    found = score(case({"a": "", "b": "a", "c": ""}), plan({"a": "", "b": "", "c": ""}))
    assert found.dangerous == ("a -> b would run at the same time",)


def test_rule_b_holds_on_the_closure() -> None:
    found = score(case({"a": "", "b": "a", "c": "b", "d": ""}), plan({"a": "", "b": "a", "c": "", "d": ""}))
    assert "a -> c would run at the same time" in found.dangerous


def test_rule_c_a_dropped_quote_of_a_dependency_is_dangerous() -> None:
    found = score(case({"a": "", "b": "a", "c": ""}), plan({"a": "", "c": ""}))
    assert found.dangerous == ("a -> b: a sub-task of a dependency was dropped",)
    assert found.dropped == 1


def test_dependent_quotes_on_one_node_are_safe() -> None:
    found = score(case({"a": "", "b": "a", "c": ""}), plan({"a": "", "c": ""}, {"a": (0, 21)}))
    assert not found.dangerous
    assert found.accurate


def test_a_linear_prediction_is_never_dangerous() -> None:
    found = score(case({"a": "", "b": "a", "c": ""}), plan({"a": ""}))
    assert not found.dangerous
    assert found.miss


def test_reversed_is_reported_and_not_accurate_only_if_it_fans_out() -> None:
    fanned = score(case({"a": "", "b": "a", "c": ""}), plan({"a": "b", "b": "", "c": ""}))
    assert (fanned.reversed_pairs, fanned.accurate, fanned.dangerous) == (1, False, ())
    linear = score(case({"a": "", "b": "a"}), plan({"a": "b", "b": ""}))
    assert (linear.reversed_pairs, linear.accurate) == (1, True)


def test_half_covered_counts_and_less_is_dropped() -> None:
    assert score(case({"a": ""}), plan({"a": ""}, {"a": (0, 5)})).dropped == 0
    assert score(case({"a": ""}), plan({"a": ""}, {"a": (0, 4)})).dropped == 1


def test_a_tie_goes_to_the_earlier_node() -> None:
    halves = plan({"a": "", "b": "a"}, {"a": (0, 5), "b": (5, 10)})
    assert assign(plan({"a": ""}), halves) == {"a": "a"}


def test_over_serialised_pairs_are_counted_where_the_prediction_fans_out() -> None:
    found = score(case({"a": "", "b": "", "c": ""}), plan({"a": "", "b": "a", "c": ""}))
    assert found.over_serialised_pairs == 1
    assert score(case({"a": "", "b": ""}), plan({"a": "", "b": "a"})).over_serialised_pairs == 0


def test_the_older_schema_is_scored_on_fanout_alone() -> None:
    old = Case("x", "en", PROMPT, False, None)
    assert score(old, plan({"a": "", "b": ""})).dangerous
    assert score(old, plan({"a": ""})).accurate


def test_baselines_are_never_dangerous_and_miss_everything() -> None:
    parallel = case({"a": "", "b": ""})
    for baseline in (NeverSplit(), AlwaysChain()):
        found = score(parallel, baseline.solve(parallel).plan)
        assert found.miss
        assert not found.dangerous


@pytest.mark.parametrize(
    ("events", "trials", "expected"), [(0, 300, 0.009936), (0, 3000, 0.000998), (3, 150, 0.0508771)]
)
def test_upper_bound_is_the_exact_one(events: int, trials: int, expected: float) -> None:
    """Against the closed form 1 - 0.05^(1/n) for no event, and the binomial sum solved for three."""
    assert upper_bound(events, trials) == pytest.approx(expected, rel=2e-3)


@given(st.integers(1, 400), st.data())
def test_upper_bound_lies_above_the_rate(trials: int, data: st.DataObject) -> None:
    events = data.draw(st.integers(0, trials))
    assert events / trials <= upper_bound(events, trials) <= 1


def test_a_summary_counts_what_can_go_wrong() -> None:
    cases = [case({"a": "", "b": ""}), case({"a": ""}), case({"a": "", "b": "", "c": "ab"})]
    found = summarise([score(c, plan({"a": "", "b": ""})) for c in cases])
    assert (found.cases, found.at_risk, found.dangerous, found.misses) == (3, 2, 2, 0)
