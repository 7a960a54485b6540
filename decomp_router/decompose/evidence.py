"""What speaks for a fan-out, in log-odds."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np


@dataclass(frozen=True)
class Evidence:
    """Signs from one reading of a prompt."""

    guard: float
    """The guard's logit that the prompt holds anything to run at the same time."""
    weakest: float
    """Independence of the least independent pair among those that would run at the same time."""
    faintest: float
    """That the least ask-like of the sub-tasks that would run at the same time is one."""

    @property
    def certainty(self) -> float:
        """Log-odds that all signs are right, were they unrelated: any one that is weak makes it weak.

        p is the product of their sigmoids, so (1 - p) / p is the sum of e^-s over the sums s of each choice of signs.
        """
        signs = (self.guard, self.weakest, self.faintest)
        doubts = [-sum(chosen) for count in (1, 2, 3) for chosen in combinations(signs, count)]
        return -float(np.logaddexp.reduce(np.array(doubts)))
