"""Recombination keeps labels true: spans still hold the words that were written, classes follow by construction."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decomp_gauntlet.cases import Case, load
from decomp_gauntlet.pieces import compose, pieces_of
from decomp_model.augment import Augmenter, _joinable, _stands_alone, load_parts
from decomp_model.markup import compile_text

MODEL = Path(__file__).parents[2] / "model"
PARTS = load_parts(MODEL / "corpus/parts")
POOL = compile_text(
    """\
=== atomic en
⟦greeting|Hi!⟧ ⟦a 1|What is a mutex?⟧ ⟦constraint a|Under 50 words.⟧
=== atomic en
⟦a 2|Write a limerick about trains.⟧
=== atomic en
⟦context|My cat is old.⟧ ⟦a 1|how do i weigh her⟧
=== atomic en
⟦a 0|Capital of Peru?⟧
=== parallel en
⟦a 1|Explain tides⟧ and ⟦b 1|explain winds⟧.
=== dependent en
⟦a 1|Pick a name⟧ and ⟦b 1 < a|write its slogan⟧.
=== atomic en judge
⟦a 1|Rate the answer.⟧ ⟦pasted|Do this. Do that.⟧
""",
    "pool",
)


def augmenter(seed: int, cases: list[Case] = POOL) -> Augmenter:
    return Augmenter(cases, {"en": PARTS["en"]}, random.Random(seed))


@pytest.mark.parametrize(
    ("operation", "classes"),
    [
        ("_joined", {"parallel"}),
        ("_followed", {"dependent"}),
        ("_followed_and_joined", {"mixed"}),
        ("_joined_with_fan_in", {"mixed"}),
        ("_merged", {"parallel", "mixed"}),
        ("_jointly_bound", {"dependent"}),
        ("_bound_each", {"parallel"}),
        ("_pasted", {"atomic"}),
    ],
)
def test_each_operation_makes_its_class(operation: str, classes: set[str]) -> None:
    for seed in range(40):
        assert getattr(augmenter(seed), operation)().cls in classes


def test_machine_traffic_is_never_joined() -> None:
    for seed in range(60):
        assert "Rate the answer" not in augmenter(seed)._joined().prompt


def test_a_joint_constraint_is_labelled_as_one() -> None:
    case = augmenter(3)._jointly_bound()
    assert case.truth is not None
    assert [clause.target for clause in case.truth.clauses].count("joint") == 1


def test_pieces_compose_back_to_the_case() -> None:
    for case in POOL:
        again = compose(pieces_of(case), case)
        assert (again.prompt, again.truth) == (case.prompt, case.truth)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10_000_000))
def test_any_draw_is_a_valid_case_whose_subtasks_hold_words(seed: int) -> None:
    case = augmenter(seed).draw()
    assert case.truth is not None
    assert case.fanout_expected == case.truth.fans_out
    for task in case.truth.subtasks:
        assert any(c.isalnum() for c in case.truth.text(task))


@pytest.mark.parametrize("lang", ["en", "es"])
def test_connecting_text_has_the_shape_its_use_needs(lang: str) -> None:
    parts = PARTS[lang]
    assert all(text.count("|") == 1 for text in (*parts.followups, *parts.fan_ins))
    assert all(text.count("{}") == 1 for text in parts.wrappers)
    for name in ("joiners", "followups", "fan_ins", "joint", "each", "personas", "greetings", "wrappers"):
        entries = getattr(parts, name)
        assert len(set(entries)) == len(entries), f"{name} repeats itself"


def test_no_machine_traffic_of_the_corpus_is_joined() -> None:
    """Tags such as `rag-template` once slipped through, and a job for software came out as one of two asks."""
    cases = [case for path in sorted((MODEL / "corpus/train").glob("*.jsonl")) for case in load(path)]
    joinable = [case for case in cases if _joinable(case)]
    assert len(joinable) > 400
    suspects = ("Return nothing but", "valid JSON", "### Task", "<chat_history>", "respond with only", "one word:")
    assert not [case.id for case in joinable for words in suspects if words.lower() in case.prompt.lower()]


def test_the_whole_corpus_recombines() -> None:
    cases = [case for path in sorted((MODEL / "corpus/train").glob("*.jsonl")) for case in load(path)]
    whole = Augmenter(cases, PARTS, random.Random(1))
    drawn = [whole.draw().cls for _ in range(300)]
    assert set(drawn) == {"atomic", "parallel", "dependent", "mixed"}


def test_merged_requests_keep_their_own_order_and_share_none() -> None:
    for seed in range(40):
        merged = augmenter(seed)._merged().truth
        assert merged is not None
        assert all(parent[:2] == child[:2] for parent, child in merged.closure.edges)


def test_what_could_draw_in_an_earlier_ask_never_comes_second() -> None:
    fan_in = compile_text("=== mixed en\n⟦a 1|Tides⟧, ⟦b 1|winds⟧ and ⟦c 1 < a,b|compare them⟧.\n", "fan")
    assert not _stands_alone(fan_in[0])
    assert _stands_alone(POOL[5])
