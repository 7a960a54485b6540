"""The rectangle of tokens that one forward pass computes."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

BLOCK = 64
"""Tokens in a prefill chunk and keys in a page: reductions are split at absolute multiples of it."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """n sequences of T tokens each.

    `tokens` [n, T] holds padding behind the first `lengths[i]` tokens of sequence i, which stand at positions
    `starts[i]`, `starts[i] + 1`, ...; its state lives in row `rows[i]` of the pools. T is 1 (decode) or `BLOCK`
    (prefill, where `starts` are multiples of `BLOCK`), so that every shape the arithmetic sees is one of two.
    """

    tokens: Ints
    starts: Ints
    lengths: Ints
    rows: Ints

    def __post_init__(self) -> None:
        n, width = self.tokens.shape
        assert width in (1, BLOCK), "a batch is one token wide or one block"
        assert self.starts.shape == self.lengths.shape == self.rows.shape == (n,)
        assert len(set(self.rows.tolist())) == n, "a row can be in a batch once"
        assert width == 1 or not (self.starts % BLOCK).any(), "prefill starts at a multiple of the block"
        assert ((self.lengths >= 1) & (self.lengths <= width)).all()

    @property
    def positions(self) -> Ints:
        """Absolute positions [n, T], padding included."""
        return self.starts[:, None] + np.arange(self.tokens.shape[1])

    @property
    def valid(self) -> npt.NDArray[np.bool_]:
        """True [n, T] where there is a token, False on padding."""
        return np.arange(self.tokens.shape[1]) < self.lengths[:, None]

    @classmethod
    def decode(cls, tokens: list[int], positions: list[int], rows: list[int]) -> "Batch":
        """One token for each of n sequences."""
        ones = np.ones(len(tokens), np.int64)
        return cls(np.array(tokens, np.int64)[:, None], np.array(positions, np.int64), ones, np.array(rows, np.int64))

    @classmethod
    def prefill(cls, tokens: list[int], start: int, row: int) -> "Batch":
        """One chunk of one prompt, padded to the block; `start` is a multiple of `BLOCK`."""
        padded = np.zeros((1, BLOCK), np.int64)
        padded[0, : len(tokens)] = tokens
        return cls(padded, *(np.array([value], np.int64) for value in (start, len(tokens), row)))
