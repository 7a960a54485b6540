"""The rectangle of tokens that one forward pass computes."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

BLOCK = 64
"""Tokens in a prefill chunk and keys in a page: reductions are split at absolute multiples of it."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """n sequences of T tokens each, in int64.

    Column 0 of sequence i stands at position `starts[i]`; its tokens are the `lengths[i]` columns from `firsts[i]` on,
    and what lies before and behind them in `tokens` [n, T] is padding. Its state lives in row `rows[i]` of the pools.
    T is 1 (decode, `firsts` 0) or `BLOCK` (prefill, `starts` multiples of `BLOCK`: a token's column is its position
    modulo the block, wherever the chunk begins), so that every shape the arithmetic sees is one of two.
    """

    tokens: Ints
    starts: Ints
    firsts: Ints
    lengths: Ints
    rows: Ints

    def __post_init__(self) -> None:
        n, width = self.tokens.shape
        assert width in (1, BLOCK), "a batch is one token wide or one block"
        assert self.starts.shape == self.firsts.shape == self.lengths.shape == self.rows.shape == (n,)
        assert len(set(self.rows.tolist())) == n, "a row can be in a batch once"
        assert width == 1 or not (self.starts % BLOCK).any(), "a prefill chunk lies in one block"
        assert ((self.firsts >= 0) & (self.lengths >= 1) & (self.firsts + self.lengths <= width)).all()

    @property
    def positions(self) -> Ints:
        """Absolute positions [n, T], padding included."""
        return self.starts[:, None] + np.arange(self.tokens.shape[1])

    @property
    def valid(self) -> npt.NDArray[np.bool_]:
        """True [n, T] where there is a token, False on padding."""
        columns = np.arange(self.tokens.shape[1])
        return (columns >= self.firsts[:, None]) & (columns < self.ends[:, None])

    @property
    def ends(self) -> Ints:
        """For each sequence the column behind its last token [n]."""
        return self.firsts + self.lengths

    @classmethod
    def decode(cls, tokens: list[int], positions: list[int], rows: list[int]) -> "Batch":
        """One token for each of n sequences."""
        firsts, ones = np.zeros(len(tokens), np.int64), np.ones(len(tokens), np.int64)
        starts = np.array(positions, np.int64)
        return cls(np.array(tokens, np.int64)[:, None], starts, firsts, ones, np.array(rows, np.int64))

    @classmethod
    def prefill(cls, tokens: list[int], position: int, row: int) -> "Batch":
        """One chunk of one prompt, its first token at `position`; it must not reach into the next block."""
        first = position % BLOCK
        padded = np.zeros((1, BLOCK), np.int64)
        padded[0, first : first + len(tokens)] = tokens
        fields = (position - first, first, len(tokens), row)
        return cls(padded, *(np.array([value], np.int64) for value in fields))
