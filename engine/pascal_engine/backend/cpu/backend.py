"""The backend protocol on C++ kernels; tensors and pools are NumPy arrays."""

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pascal_engine.backend import kv
from pascal_engine.backend.batch import Batch
from pascal_engine.backend.cpu import _native
from pascal_engine.backend.cpu.linear import Matrices
from pascal_engine.backend.protocol import KvKind

F32 = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Pool = npt.NDArray[Any]


@dataclass(frozen=True)
class RopeTable:
    """Cosines and sines [positions, rotated / 2]."""

    cos: F32
    sin: F32


@dataclass(frozen=True)
class Packing:
    """Where the valid tokens of a batch lie when padding is left out: those of sequence i, whose state is in row
    `rows[i]`, are tokens `offsets[i]` up to `offsets[i + 1]`; `tokens` and `positions` [tokens] belong to them."""

    batch: Batch
    tokens: Ints
    positions: Ints
    rows: Ints
    offsets: Ints

    @classmethod
    def of(cls, batch: Batch) -> "Packing":
        offsets = np.zeros(len(batch.rows) + 1, np.int64)
        np.cumsum(batch.lengths, out=offsets[1:])
        valid = batch.valid
        rows = np.ascontiguousarray(batch.rows)
        return cls(batch, batch.tokens[valid], batch.positions[valid], rows, offsets)


class CpuBackend(Matrices):
    """Implements `Backend`; all arithmetic is float32, and every output element has one order of sums.

    Padding is left out: `embed` gives [tokens, 1, hidden] for the valid tokens of the batch, sequence after sequence,
    and all operations compute tensors of such tokens.
    """

    uniform = True

    def __init__(self, n_threads: int = 1) -> None:
        """The threads are the process's own: the last backend made decides how many there are."""
        _native.set_threads(n_threads)
        self._packing: Packing | None = None

    def vector(self, values: F32) -> F32:
        return np.ascontiguousarray(values, np.float32)

    def conv_kernel(self, values: F32) -> F32:
        return np.ascontiguousarray(values.T, np.float32)

    def zeros(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Pool:
        return np.zeros(shape, dtype)

    def kv_pool(self, rows: int, pages: int, kv_heads: int, head_dim: int, kind: KvKind) -> Pool:
        return kv.kv_pool(rows, pages, kv_heads, head_dim, kind)

    def clear(self, pool: Pool, row: int, used: int | None = None) -> None:
        pool[row, :used] = 0

    def copy_out(self, pool: Pool, row: int, entries: slice = slice(None)) -> Pool:
        return pool[row, entries].copy()

    def copy_in(self, pool: Pool, row: int, saved: Pool, first: int = 0) -> None:
        pool[row, first : first + len(saved)] = saved

    def embed(self, table: _native.Matrix, batch: Batch) -> F32:
        return self.rows_of(table, self._packed(batch).tokens)[:, None]

    def add(self, x: F32, y: F32) -> F32:
        out = np.empty(x.shape, np.float32)
        _native.add(x, y, out)
        return out

    def rms_norm(self, x: F32, weight: F32, eps: float) -> F32:
        out = np.empty(x.shape, np.float32)
        _native.rms_norm(x, weight, eps, out)
        return out

    def l2_norm(self, x: F32, eps: float) -> F32:
        out = np.empty(x.shape, np.float32)
        _native.l2_norm(x, eps, out)
        return out

    def silu_gate(self, x: F32, gate: F32) -> F32:
        out = np.empty(x.shape, np.float32)
        _native.silu_gate(x, gate, out)
        return out

    def sigmoid_gate(self, x: F32, gate: F32) -> F32:
        out = np.empty(x.shape, np.float32)
        _native.sigmoid_gate(x, gate, out)
        return out

    def rope_table(self, n_positions: int, inverse_frequencies: npt.NDArray[np.float64]) -> RopeTable:
        angles = np.outer(np.arange(n_positions), inverse_frequencies)
        return RopeTable(np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32))

    def rope(self, x: F32, table: RopeTable, batch: Batch) -> F32:
        out = np.empty(x.shape, np.float32)
        _native.rope(x, table.cos, table.sin, self._packed(batch).positions, out)
        return out

    def attention(self, q: F32, k: F32, v: F32, keys: Pool, values: Pool, batch: Batch) -> F32:
        packing = self._packed(batch)
        out = np.empty(q.shape, np.float32)
        _native.attention(q, k, v, keys, values, packing.rows, packing.offsets, packing.positions, out)
        return out

    def causal_conv(self, x: F32, kernel: F32, pool: Pool, batch: Batch) -> F32:
        packing = self._packed(batch)
        out = np.empty(x.shape, np.float32)
        _native.causal_conv(x, kernel, pool, packing.rows, packing.offsets, out)
        return out

    def delta_gates(self, alpha: F32, beta: F32, a: F32, dt: F32) -> tuple[F32, F32]:
        decay, strength = np.empty(alpha.shape, np.float32), np.empty(alpha.shape, np.float32)
        _native.delta_gates(alpha, beta, a, dt, decay, strength)
        return decay, strength

    def delta_rule(self, q: F32, k: F32, v: F32, gates: tuple[F32, F32], pool: Pool, batch: Batch) -> F32:
        packing = self._packed(batch)
        out = np.empty(v.shape, np.float32)
        _native.delta_rule(q, k, v, *gates, pool, packing.rows, packing.offsets, out)
        return out

    def take_heads(self, x: F32, heads: tuple[int, ...]) -> F32:
        out = np.empty((*x.shape[:2], len(heads), x.shape[3]), np.float32)
        _native.take_heads(x, _indices(heads), out)
        return out

    def last_valid(self, x: F32, batch: Batch) -> F32:
        return x[self._packed(batch).offsets[1:] - 1]

    def all_valid(self, x: F32, batch: Batch) -> F32:
        return x

    def to_numpy(self, x: F32) -> F32:
        return x

    def _packed(self, batch: Batch) -> Packing:
        """The packing of `batch`, made once for all operations on it."""
        if self._packing is None or self._packing.batch is not batch:
            self._packing = Packing.of(batch)
        return self._packing


@lru_cache
def _indices(heads: tuple[int, ...]) -> Ints:
    return np.array(heads, np.int64)


def physical_cores() -> int:
    """Cores that this process may run on, hyper-threads of one core counted once."""
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    cores = set()
    for cpu in allowed:
        siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        cores.add(siblings.read_text() if siblings.exists() else str(cpu))
    return max(len(cores), 1)
