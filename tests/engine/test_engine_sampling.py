"""Choosing tokens, and stop strings."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pascal_engine.sampling.params import SamplingParams
from pascal_engine.sampling.sampler import Sampler
from pascal_engine.schedule.stop import StopMatcher
from tests.engine.harness import tiny_tokenizer

LOGITS = np.array([0.0, 3.0, 2.0, 2.5, -5.0, 3.0], np.float32)
OPEN = SamplingParams(temperature=1, top_k=0, top_p=1, min_p=0, seed=7)


def drawn(params: SamplingParams, n: int = 400) -> list[int]:
    sampler = Sampler(params, tiny_tokenizer(), 4096, [0])
    return [sampler.sample(LOGITS).token for _ in range(n)]


def test_greedy_takes_the_first_of_the_best() -> None:
    assert set(drawn(replace(OPEN, temperature=0))) == {1}


@pytest.mark.parametrize(
    ("change", "tokens"),
    [
        ({"top_k": 1}, {1}),
        ({"top_k": 2}, {1, 5}),
        ({"top_k": 3}, {1, 5, 3}),
        ({"top_p": 0.0}, {1}),
        ({"top_p": 0.5}, {1, 5}),
        ({"min_p": 0.5}, {1, 5, 3}),
        ({"min_p": 1.0}, {1, 5}),
        ({"temperature": 100.0}, {0, 1, 2, 3, 4, 5}),
        ({"temperature": 0.001}, {1, 5}),
    ],
)
def test_filters_keep_only_their_tokens(change: dict[str, float], tokens: set[int]) -> None:
    assert set(drawn(replace(OPEN, **change))) == tokens


@pytest.mark.parametrize("temperature", [1e-5, 1e-300, 1e-308, 5e-324])
def test_a_tiny_temperature_is_greedy(temperature: float) -> None:
    """Below 1e-307 scores once divided to infinity, and the tokens were nonsense."""
    assert set(drawn(replace(OPEN, temperature=temperature))) <= {1, 5}, "two logits share the top"


def test_draws_follow_the_probabilities() -> None:
    expected = np.exp(LOGITS) / np.exp(LOGITS).sum()
    found = np.bincount(drawn(OPEN, 4000), minlength=6) / 4000
    assert np.abs(found - expected).max() < 0.03


def test_a_seed_repeats_and_no_seed_does_not() -> None:
    assert drawn(OPEN) == drawn(OPEN)
    assert drawn(OPEN) != drawn(replace(OPEN, seed=8))
    assert drawn(replace(OPEN, seed=None)) != drawn(replace(OPEN, seed=None))


@given(
    text=st.text("abc", max_size=30), stops=st.lists(st.text("abc", min_size=1, max_size=4), max_size=3), data=st.data()
)
def test_stop_strings_are_found_across_any_borders_and_never_shown(
    text: str, stops: list[str], data: st.DataObject
) -> None:
    matcher, shown, found = StopMatcher(stops), "", None
    rest = text
    while rest and found is None:
        cut = data.draw(st.integers(1, len(rest)))
        part, rest = rest[:cut], rest[cut:]
        new, found = matcher.add(part)
        shown += new
    ends = [text.find(stop) for stop in stops if stop in text]
    if found is None:
        assert not ends
        assert shown + matcher.finish() == text
    else:
        # Fed in pieces, the match that is complete first wins: no text of it has been shown.
        assert text.startswith(shown + found)
        assert not any(stop in shown for stop in stops)


def test_text_that_cannot_become_a_stop_string_is_not_kept_back() -> None:
    matcher = StopMatcher(["END"])
    assert [matcher.add(part) for part in ("a", "E", "N", "x", "END")] == [
        ("a", None),
        ("", None),
        ("", None),
        ("ENx", None),
        ("", "END"),
    ]
