"""A fan-out needs all signs; the weakest one decides."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decomp_router.decompose.evidence import Evidence

LOG_ODDS = st.floats(-30, 30)


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


@given(st.floats(-8, 8), st.floats(-8, 8), st.floats(-8, 8))
def test_certainty_is_the_log_odds_of_all(guard: float, weakest: float, faintest: float) -> None:
    together = sigmoid(guard) * sigmoid(weakest) * sigmoid(faintest)
    expected = math.log(together) - math.log1p(-together)
    assert Evidence(guard, weakest, faintest).certainty == pytest.approx(expected, abs=1e-6)


@given(LOG_ODDS, LOG_ODDS, LOG_ODDS)
def test_no_sign_makes_up_for_a_weak_one(guard: float, weakest: float, faintest: float) -> None:
    assert Evidence(guard, weakest, faintest).certainty <= min(guard, weakest, faintest) + 1e-9


def test_extremes_do_not_overflow() -> None:
    assert Evidence(1e4, 1e4, -1e4).certainty == -1e4
