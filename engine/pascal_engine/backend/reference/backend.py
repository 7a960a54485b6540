"""The NumPy implementation of the backend protocol: clear first, fast second."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pascal_engine.backend import kv
from pascal_engine.backend.batch import Batch
from pascal_engine.backend.protocol import KvKind
from pascal_engine.backend.reference import attention, delta_net, experts
from pascal_engine.backend.reference.delta_net import sigmoid
from pascal_engine.backend.reference.gemm import PinnedGemm
from pascal_engine.backend.reference.matrix import Matrix
from pascal_engine.gguf.rows import Rows

F32 = npt.NDArray[np.float32]
Pool = npt.NDArray[Any]


@dataclass(frozen=True)
class RopeTable:
    """Cosines and sines [positions, rotated / 2]."""

    cos: F32
    sin: F32


class ReferenceBackend:
    """Implements `Backend` on NumPy arrays; all arithmetic is float32."""

    uniform = False  # BLAS takes another kernel for one row than for a block of them

    def __init__(self, gemm: PinnedGemm | None = None) -> None:
        self._gemm = gemm or PinnedGemm()

    def vector(self, values: F32) -> F32:
        return values

    def conv_kernel(self, values: F32) -> F32:
        return values

    def matrix(self, parts: Sequence[Rows]) -> Matrix:
        return Matrix.of(parts, self._gemm)

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

    def embed(self, table: Matrix, batch: Batch) -> F32:
        return table.weights[batch.tokens]

    def linear(self, x: F32, matrix: Matrix) -> F32:
        if x.shape[1] > 1:
            return matrix.blocks(x)
        return matrix.rows(x[:, 0])[:, None]

    def add(self, x: F32, y: F32) -> F32:
        return x + y

    def rms_norm(self, x: F32, weight: F32, eps: float) -> F32:
        norm: F32 = np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + np.float32(eps))
        return x / norm * weight

    def l2_norm(self, x: F32, eps: float) -> F32:
        norm: F32 = np.sqrt(np.sum(x * x, axis=-1, keepdims=True) + np.float32(eps))
        return x / norm

    def silu_gate(self, x: F32, gate: F32) -> F32:
        return x * (gate * sigmoid(gate))

    def sigmoid_gate(self, x: F32, gate: F32) -> F32:
        return x * sigmoid(gate)

    def rope_table(self, n_positions: int, inverse_frequencies: npt.NDArray[np.float64]) -> RopeTable:
        angles = np.outer(np.arange(n_positions), inverse_frequencies)
        return RopeTable(np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32))

    def rope(self, x: F32, table: RopeTable, batch: Batch) -> F32:
        # Padding may stand behind the last position of the table; what it computes is never read.
        positions = np.minimum(batch.positions, len(table.cos) - 1)
        cos, sin = table.cos[positions][:, :, None], table.sin[positions][:, :, None]
        half = cos.shape[-1]
        first, second, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
        return np.concatenate([first * cos - second * sin, second * cos + first * sin, rest], axis=-1)

    def attention(self, q: F32, k: F32, v: F32, keys: Pool, values: Pool, batch: Batch) -> F32:
        attention.store(keys, k, batch)
        attention.store(values, v, batch)
        return attention.attend(q, keys, values, batch)

    def causal_conv(self, x: F32, kernel: F32, pool: F32, batch: Batch) -> F32:
        out = delta_net.causal_conv(x, kernel, pool, batch)
        return out * sigmoid(out)

    def delta_gates(self, alpha: F32, beta: F32, a: F32, dt: F32) -> tuple[F32, F32]:
        return a * np.logaddexp(np.float32(0), alpha + dt), sigmoid(beta)

    def delta_rule(self, q: F32, k: F32, v: F32, gates: tuple[F32, F32], pool: F32, batch: Batch) -> F32:
        return delta_net.delta_rule(q, k, v, *gates, pool, batch)

    def take_heads(self, x: F32, heads: tuple[int, ...]) -> F32:
        return x[:, :, list(heads)]

    def experts(self, x: F32, router: Matrix, gate_up: Matrix, down: Matrix, n_used: int) -> F32:
        return experts.mixture(x.reshape(-1, x.shape[-1]), router, gate_up, down, n_used).reshape(x.shape)

    def last_valid(self, x: F32, batch: Batch) -> F32:
        return np.take_along_axis(x, batch.ends[:, None, None] - 1, axis=1)

    def all_valid(self, x: F32, batch: Batch) -> F32:
        return x[batch.valid][:, None]

    def to_numpy(self, x: F32) -> F32:
        return x
