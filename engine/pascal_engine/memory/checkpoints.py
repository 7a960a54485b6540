"""Checkpoints: the whole state of a sequence in host memory, and at which tokens one is kept."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from pascal_engine.backend.batch import BLOCK
from pascal_engine.backend.protocol import HostArray

Arrays: TypeAlias = tuple[HostArray, ...]

WORTHWHILE = 16
"""Tokens that a checkpoint nobody asked for must save, or a wait for another's prefill: fewer are computed anew."""


class StateSource(Protocol):
    """Where state can be had from: a row of the pools, or a snapshot."""

    def pages(self, first: int, stop: int) -> list[Arrays]:
        """The pages from `first` up to `stop`, each one array [kv_heads, BLOCK, ...] a pool of keys or values."""

    def recurrent(self) -> Arrays:
        """One array for each pool of recurrent state."""


@dataclass(frozen=True)
class Snapshot:
    """The state after `n_tokens` tokens: `kept_pages` ends with the page that is not yet full, if there is one."""

    n_tokens: int
    kept_pages: tuple[Arrays, ...]
    kept_recurrent: Arrays

    def pages(self, first: int, stop: int) -> list[Arrays]:
        return list(self.kept_pages[first:stop])

    def recurrent(self) -> Arrays:
        return self.kept_recurrent


def n_pages(n_tokens: int) -> int:
    """Pages that `n_tokens` tokens fill or begin."""
    return -(-n_tokens // BLOCK)


class CheckpointPlan:
    """Where a prompt's prefill stops, and where its state is kept.

    State is kept at the stops that are asked for (message ends, forks), at the prompt's end, at the last block
    boundary before it, and at blocks 1, 2, 4, 8, ...; where a model has no recurrent state, and keeping costs next to
    nothing, at every block.
    """

    def __init__(self, n_prompt: int, stops: Iterable[int], every_block: bool) -> None:
        self._n_prompt = n_prompt
        self._stops = {stop for stop in stops if 0 < stop < n_prompt}
        self._every_block = every_block

    def add(self, stop: int) -> None:
        """Asks for a checkpoint after `stop` tokens, 0 < stop <= prompt."""
        assert 0 < stop <= self._n_prompt
        self._stops.add(stop)

    def chunk_end(self, n_computed: int) -> int:
        """Where the chunk that begins after `n_computed` tokens ends: at a stop, or with its block or the prompt."""
        block_end = (n_computed // BLOCK + 1) * BLOCK
        return min([block_end, self._n_prompt, *(stop for stop in self._stops if stop > n_computed)])

    def keeps(self, n_computed: int) -> bool:
        """Whether the state after `n_computed` tokens is kept."""
        if n_computed == self._n_prompt or n_computed in self._stops:
            return True
        block, inside = divmod(n_computed, BLOCK)
        is_last = block == (self._n_prompt - 1) // BLOCK
        return not inside and (is_last or self._every_block or not block & (block - 1))
