"""What speaks for a fan-out, in log-odds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Evidence:
    """Signs from one reading of a prompt."""

    guard: float
    """The guard's logit that the prompt holds anything to run at the same time."""
    weakest: float
    """Independence of the least independent pair among those that would run at the same time."""

    @property
    def certainty(self) -> float:
        """Log-odds that both signs are right, were they unrelated: either one that is weak makes it weak.

        p = sigmoid(guard) * sigmoid(weakest), so p / (1 - p) = 1 / (e^-guard + e^-weakest + e^-(guard + weakest)).
        """
        doubts = np.array([-self.guard, -self.weakest, -self.guard - self.weakest])
        return -float(np.logaddexp.reduce(doubts))
