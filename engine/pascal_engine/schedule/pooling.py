"""From the hidden states of a prompt's tokens to its embedding."""

from typing import Literal

import numpy as np
import numpy.typing as npt

Pooling = Literal["mean", "last"]
"""The mean of all tokens' states, or the state of the last token."""


class Pooler:
    """Takes the states of one prompt, chunk by chunk. They are added one by one, in float64, so that the embedding does
    not depend on where chunks end."""

    def __init__(self, pooling: Pooling) -> None:
        self._pooling = pooling
        self._pooled: npt.NDArray[np.float64] = np.zeros(0)
        self._count = 0

    def add(self, states: npt.NDArray[np.float32]) -> None:
        """The states [tokens, hidden] of the next tokens."""
        for state in states.astype(np.float64):
            self._pooled = state if self._pooling == "last" or not self._count else self._pooled + state
            self._count += 1

    @property
    def embedding(self) -> npt.NDArray[np.float32]:
        """What the states so far give [hidden], not normalised."""
        total = self._pooled if self._pooling == "last" else self._pooled / self._count
        return total.astype(np.float32)
