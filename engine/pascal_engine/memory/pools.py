"""Keys and values, delta-net states and convolution inputs of all sequences: one pool a layer, one row a sequence.

The invariant of every pool: what the row's present sequence has not written is zero. So whatever an earlier request
left behind, even an infinity, cannot reach a later one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pascal_engine.backend.batch import BLOCK
from pascal_engine.backend.protocol import Backend, KvKind, Tensor
from pascal_engine.hybrid.params import HyperParams
from pascal_engine.memory.checkpoints import Arrays, Snapshot, StateSource, n_pages


@dataclass(frozen=True)
class KvPool:
    """Keys and values of one attention layer, see `Backend.kv_pool`."""

    keys: Tensor
    values: Tensor


@dataclass(frozen=True)
class RecurrentPool:
    """State [rows, value_heads, D, D] and convolution inputs [rows, K - 1, channels] of one delta-net layer."""

    states: Tensor
    conv: Tensor


class StatePools:
    """The state of `n_rows` sequences of up to `n_ctx` tokens."""

    def __init__(
        self,
        backend: Backend,
        params: HyperParams,
        n_rows: int,
        n_ctx: int,
        key_type: KvKind = "f32",
        value_type: KvKind = "f32",
    ) -> None:
        self.n_rows = n_rows
        self.n_ctx = n_ctx
        self._backend = backend
        self._key_type, self._value_type = key_type, value_type
        self.layers = [
            self._recurrent(params) if recurrent else self._attention(params) for recurrent in params.recurrent
        ]

    def clear(self, row: int, n_tokens: int) -> None:
        """Makes `row` new after a sequence of `n_tokens` tokens."""
        for pool in self._kv():
            self._backend.clear(pool, row, n_pages(n_tokens))
        for pool in self._recurrent_state():
            self._backend.clear(pool, row)

    @property
    def uniform(self) -> bool:
        """As `Backend.uniform`."""
        return self._backend.uniform

    @cached_property
    def page_bytes(self) -> int:
        """Bytes of one page of all layers."""
        return _n_bytes(self.row(0).pages(0, 1)[0])

    @cached_property
    def recurrent_bytes(self) -> int:
        """Bytes of one sequence's recurrent state, 0 in models that have attention alone."""
        return _n_bytes(self.row(0).recurrent())

    def row(self, row: int) -> "RowState":
        """The state of `row`, to be copied out."""
        return RowState(self._backend, list(self._kv()), list(self._recurrent_state()), row)

    def snapshot(self, row: int, n_tokens: int) -> Snapshot:
        """A copy of all state of `row`, which holds exactly `n_tokens` tokens."""
        source = self.row(row)
        return Snapshot(n_tokens, tuple(source.pages(0, n_pages(n_tokens))), source.recurrent())

    def load(self, row: int, n_tokens: int, source: StateSource) -> None:
        """Fills `row`, which must be clear, with the state of `n_tokens` tokens."""
        pages = source.pages(0, n_pages(n_tokens))
        for pool, parts in zip(self._kv(), zip(*pages, strict=True), strict=True):
            self._backend.copy_in(pool, row, np.stack(parts))
        for pool, saved in zip(self._recurrent_state(), source.recurrent(), strict=True):
            self._backend.copy_in(pool, row, saved)

    def _kv(self) -> Iterator[Tensor]:
        for pool in self.layers:
            if isinstance(pool, KvPool):
                yield from (pool.keys, pool.values)

    def _recurrent_state(self) -> Iterator[Tensor]:
        for pool in self.layers:
            if isinstance(pool, RecurrentPool):
                yield from (pool.states, pool.conv)

    def _attention(self, params: HyperParams) -> KvPool:
        pages = -(-self.n_ctx // BLOCK)
        shape = (self.n_rows, pages, params.n_kv_heads, params.head_dim)
        return KvPool(*(self._backend.kv_pool(*shape, kind) for kind in (self._key_type, self._value_type)))

    def _recurrent(self, params: HyperParams) -> RecurrentPool:
        delta = params.delta_net
        assert delta is not None
        states = (self.n_rows, delta.n_value_heads, delta.head_dim, delta.head_dim)
        conv = (self.n_rows, delta.conv_kernel - 1, delta.conv_channels)
        return RecurrentPool(self._backend.zeros(states, np.float32), self._backend.zeros(conv, np.float32))


@dataclass(frozen=True)
class RowState:
    """One row of all pools as a source of state."""

    backend: Backend
    kv: list[Tensor]
    recurrent_state: list[Tensor]
    index: int

    def pages(self, first: int, stop: int) -> list[Arrays]:
        runs = [self.backend.copy_out(pool, self.index, slice(first, stop)) for pool in self.kv]
        # Each page is a copy of its own, so that its memory is free as soon as nobody keeps it.
        return [tuple(run[page].copy() for run in runs) for page in range(stop - first)]

    def recurrent(self) -> Arrays:
        return tuple(self.backend.copy_out(pool, self.index) for pool in self.recurrent_state)


def _n_bytes(arrays: Arrays) -> int:
    return sum(array.nbytes for array in arrays)
