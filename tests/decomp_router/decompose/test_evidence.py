"""A fan-out needs both signs; the weaker one decides."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decomp_router.decompose.evidence import Evidence

LOG_ODDS = st.floats(-30, 30)


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


@given(st.floats(-8, 8), st.floats(-8, 8))
def test_certainty_is_the_log_odds_of_both(guard: float, weakest: float) -> None:
    both = sigmoid(guard) * sigmoid(weakest)
    assert Evidence(guard, weakest).certainty == pytest.approx(math.log(both / (1 - both)), abs=1e-6)


@given(LOG_ODDS, LOG_ODDS)
def test_no_sign_makes_up_for_a_weak_one(guard: float, weakest: float) -> None:
    assert Evidence(guard, weakest).certainty <= min(guard, weakest) + 1e-9


def test_extremes_do_not_overflow() -> None:
    assert Evidence(1e4, -1e4).certainty == -1e4
