"""The tokens that may still be chosen, and how the likeliest are found without sorting a vocabulary."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]
Floats = npt.NDArray[np.floating[Any]]
Indices = npt.NDArray[np.intp]

LARGE = 1e30
"""No penalty or bias moves a logit further than this, so that differences of logits stay finite."""

_GROUP = 64


class Candidates:
    """Tokens with their scores (logits); `in_order` says that scores fall. A score of -inf stands for a token that must
    not be chosen; one at least is finite."""

    def __init__(self, scores: Floats) -> None:
        self.tokens: Indices = _identity(len(scores))
        self.scores = scores
        self.in_order = False

    def __len__(self) -> int:
        return len(self.scores)

    def keep(self, chosen: npt.NDArray[Any]) -> None:
        """Keeps those that `chosen` selects: a mask, or indices that rise."""
        self.tokens, self.scores = self.tokens[chosen], self.scores[chosen]

    def keep_ordered(self, chosen: Indices) -> None:
        """Keeps those that `chosen` selects by falling score."""
        self.keep(chosen)
        self.in_order = True

    def adjust(self, tokens: Indices, change: Callable[[F64, Indices], F64]) -> None:
        """Gives new scores to those of `tokens` that are candidates: `change` gets their scores, and their indices in
        `tokens`."""
        places, which = self._find(tokens)
        scores = self.scores.copy()
        old = scores[places].astype(np.float64)
        scores[places] = np.where(old == -np.inf, old, np.clip(change(old, which), -LARGE, LARGE))
        self.scores, self.in_order = scores, False

    def best(self, count: int) -> Indices:
        """As `best`, of the scores."""
        return np.arange(min(count, len(self))) if self.in_order else best(self.scores, count)

    def probabilities(self) -> F64:
        """The softmax of the scores."""
        weights = np.exp(self.scores - self.scores.max()).astype(np.float64)
        probabilities: F64 = weights / weights.sum()
        return probabilities

    def _find(self, tokens: Indices) -> tuple[Indices, Indices]:
        if self.tokens is _identity(len(self)):
            return tokens, np.arange(len(tokens))
        _, places, which = np.intersect1d(self.tokens, tokens, assume_unique=True, return_indices=True)
        return places, which


def best(scores: Floats, count: int) -> Indices:
    """Indices of the `count` best, one at least, by falling score; among equals the lower index goes first."""
    if count >= len(scores):
        return np.argsort(-scores, kind="stable")
    few = np.flatnonzero(scores >= _bound(scores, count))
    return few[np.argsort(-scores[few], kind="stable")[:count]]


def leading(scores: Floats, weights: F64, share: float, at_least: int) -> Indices:
    """Indices by falling score, as many as it takes until their weights add up to `share`."""
    first, count = max(at_least, 1) - 1, 256
    while True:
        order = best(scores, count)
        enough = np.flatnonzero(np.cumsum(weights[order])[first:] >= share)
        if len(enough):
            return order[: first + int(enough[0]) + 1]
        if len(order) == len(scores):
            return order
        count *= 8


def _bound(scores: Floats, count: int) -> np.floating[Any]:
    """A score that at least `count` reach. The maxima of groups are quicker to search than all scores, and not many
    more scores reach a bound found among them."""
    groups = len(scores) // _GROUP
    if 4 * count <= groups:
        scores = scores[: groups * _GROUP].reshape(_GROUP, groups).max(axis=0)
    bound: np.floating[Any] = np.partition(scores, len(scores) - count)[len(scores) - count]
    return bound


@lru_cache(maxsize=2)
def _identity(count: int) -> Indices:
    return np.arange(count)
