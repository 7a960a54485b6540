"""Keys and values, delta-net states and convolution inputs of all sequences: one pool a layer, one row a sequence.

The invariant of every pool: what the row's present sequence has not written is zero. So whatever an earlier request
left behind, even an infinity, cannot reach a later one.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pascal_engine.backend.batch import BLOCK
from pascal_engine.backend.protocol import Backend, Tensor
from pascal_engine.hybrid.params import HyperParams


@dataclass(frozen=True)
class KvPool:
    """Keys and values of one attention layer: [rows, pages, kv_heads, BLOCK, head_dim]."""

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
        key_type: npt.DTypeLike = np.float32,
        value_type: npt.DTypeLike = np.float32,
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
        used_pages = -(-n_tokens // BLOCK)
        for pool in self.layers:
            if isinstance(pool, KvPool):
                self._backend.clear(pool.keys, row, used_pages)
                self._backend.clear(pool.values, row, used_pages)
            else:
                self._backend.clear(pool.states, row)
                self._backend.clear(pool.conv, row)

    def _attention(self, params: HyperParams) -> KvPool:
        pages = -(-self.n_ctx // BLOCK)
        shape = (self.n_rows, pages, params.n_kv_heads, BLOCK, params.head_dim)
        return KvPool(self._backend.zeros(shape, self._key_type), self._backend.zeros(shape, self._value_type))

    def _recurrent(self, params: HyperParams) -> RecurrentPool:
        delta = params.delta_net
        assert delta is not None
        states = (self.n_rows, delta.n_value_heads, delta.head_dim, delta.head_dim)
        conv = (self.n_rows, delta.conv_kernel - 1, delta.conv_channels)
        return RecurrentPool(self._backend.zeros(states, np.float32), self._backend.zeros(conv, np.float32))
