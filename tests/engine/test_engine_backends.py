"""The operations of all backends: the CPU's against the reference's, and each against the laws of the protocol."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pascal_engine.backend.batch import BLOCK, Batch
from pascal_engine.backend.cpu import CpuBackend
from pascal_engine.backend.protocol import Backend, KvKind, Tensor
from pascal_engine.backend.reference import ReferenceBackend
from pascal_engine.errors import ModelError

F32 = npt.NDArray[np.float32]
KINDS: tuple[KvKind, ...] = ("f32", "f16", "q8_0", "q4_0")
N_ROWS, N_PAGES = 5, 3


@dataclass(frozen=True)
class Side:
    """A backend, and how tensors [n, T, ...] come to it and back."""

    backend: Backend
    packs: bool

    def put(self, x: F32, batch: Batch) -> Tensor:
        return x[batch.valid][:, None] if self.packs else x

    def get(self, x: Tensor, batch: Batch) -> F32:
        """The valid tokens' values [tokens, ...]."""
        values = np.asarray(x)
        return values[:, 0] if self.packs else values[batch.valid]


SIDES = {"reference": Side(ReferenceBackend(), packs=False), "cpu": Side(CpuBackend(2), packs=True)}


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    """Decode of one to four sequences, or chunks that begin anywhere in their block."""
    n = draw(st.integers(1, 4))
    rows = draw(st.permutations(range(N_ROWS)))[:n]
    if draw(st.booleans()):
        return Batch.decode([0] * n, [draw(st.integers(0, N_PAGES * BLOCK - 1)) for _ in rows], list(rows))
    firsts = np.array([draw(st.integers(0, BLOCK - 1)) for _ in rows])
    lengths = np.array([draw(st.integers(1, BLOCK - int(first))) for first in firsts])
    starts = np.array([BLOCK * draw(st.integers(0, N_PAGES - 1)) for _ in rows])
    return Batch(np.zeros((n, BLOCK), np.int64), starts, firsts, lengths, np.array(rows))


class Inputs:
    """Random tensors for a batch, with NaN on its padding."""

    def __init__(self, batch: Batch, seed: int) -> None:
        self.batch, self.rng = batch, np.random.default_rng(seed)

    def floats(self, *shape: int) -> F32:
        return self.rng.standard_normal(shape).astype(np.float32)

    def tokens(self, *shape: int) -> F32:
        x = self.floats(*self.batch.tokens.shape, *shape)
        x[~self.batch.valid] = np.nan
        return x


seeds = st.integers(0, 2**32)
cases = settings(max_examples=25, deadline=None, derandomize=True)


def close(got: F32, expected: F32, bound: float = 1e-5) -> None:
    assert got.shape == expected.shape
    assert np.abs(got - expected).max() <= bound * max(np.abs(expected).max(), 1e-30)


Operation = Callable[[Backend, Callable[[F32], Tensor]], Tensor]


def compare(batch: Batch, operation: Operation) -> None:
    """The same operation on both sides; what stands on padding is not looked at."""
    with np.errstate(invalid="ignore"):
        results = [
            side.get(operation(side.backend, lambda x, side=side: side.put(x, batch)), batch) for side in SIDES.values()
        ]
    close(results[1], results[0])


@cases
@given(batches(), st.sampled_from([1, 5, 8, 40, 129]), seeds)
def test_operations_on_single_tokens(batch: Batch, width: int, seed: int) -> None:
    inputs = Inputs(batch, seed)
    x, y = inputs.tokens(width), 5 * inputs.tokens(width)
    one, weight = inputs.tokens(1), inputs.floats(width)
    compare(batch, lambda backend, put: backend.add(put(x), put(y)))
    compare(batch, lambda backend, put: backend.rms_norm(put(x), backend.vector(weight), 1e-6))
    compare(batch, lambda backend, put: backend.l2_norm(put(x), 1e-6))
    compare(batch, lambda backend, put: backend.silu_gate(put(x), put(y)))
    compare(batch, lambda backend, put: backend.sigmoid_gate(put(x), put(y)))
    compare(batch, lambda backend, put: backend.sigmoid_gate(put(x), put(one)))


@cases
@given(batches(), seeds)
def test_operations_on_parts_of_a_wider_tensor(batch: Batch, seed: int) -> None:
    inputs = Inputs(batch, seed)
    x = inputs.tokens(3 * 16)
    compare(batch, lambda backend, put: backend.silu_gate(put(x)[..., 3:19], put(x)[..., 20:36]))
    compare(batch, lambda backend, put: backend.take_heads(put(x).reshape(*put(x).shape[:2], 3, 16), (2, 0, 0, 1)))


@cases
@given(batches(), st.sampled_from([(8, 8), (24, 10), (64, 64)]), seeds)
def test_rope(batch: Batch, dims: tuple[int, int], seed: int) -> None:
    head_dim, rotated = dims
    x = Inputs(batch, seed).tokens(3, head_dim)
    frequencies = 100.0 ** -(np.arange(0, rotated, 2) / rotated)
    compare(
        batch,
        lambda backend, put: backend.rope(put(x), backend.rope_table(N_PAGES * BLOCK, frequencies), batch),
    )


@cases
@given(batches(), st.sampled_from(KINDS), st.sampled_from(KINDS), st.sampled_from([(4, 2, 32), (3, 3, 64)]), seeds)
def test_attention(batch: Batch, key_kind: KvKind, value_kind: KvKind, heads: tuple[int, int, int], seed: int) -> None:
    n_heads, n_kv, dim = heads
    inputs = Inputs(batch, seed)
    history = Batch(
        np.zeros((N_ROWS, BLOCK), np.int64), *(np.full(N_ROWS, value) for value in (0, 0, BLOCK)), np.arange(N_ROWS)
    )
    before = Inputs(history, seed + 1).tokens(2 * n_kv + n_heads, dim)
    now = inputs.tokens(2 * n_kv + n_heads, dim)
    pools = {}

    def split(x: Tensor) -> list[Tensor]:
        return [x[:, :, :n_heads], x[:, :, n_heads : n_heads + n_kv], x[:, :, n_heads + n_kv :]]

    def attend(backend: Backend, put: Callable[[F32], Tensor]) -> Tensor:
        keys, values = (backend.kv_pool(N_ROWS, N_PAGES, n_kv, dim, kind) for kind in (key_kind, value_kind))
        earlier = before.reshape(-1, 1, *before.shape[2:]) if isinstance(backend, CpuBackend) else before
        backend.attention(*split(earlier), keys, values, history)
        pools[type(backend)] = keys, values
        return backend.attention(*split(put(now)), keys, values, batch)

    compare(batch, attend)
    for got, expected in zip(*pools.values(), strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("kind", ["q8_0", "q4_0"])
@pytest.mark.parametrize("side", SIDES.values(), ids=SIDES)
def test_quantised_pools_need_whole_blocks(side: Side, kind: KvKind) -> None:
    with pytest.raises(ModelError, match="choose f16"):
        side.backend.kv_pool(1, 1, 1, 40, kind)


@cases
@given(batches(), st.sampled_from([(1, 4), (20, 4), (520, 3)]), seeds)
def test_causal_conv(batch: Batch, shape: tuple[int, int], seed: int) -> None:
    channels, taps = shape
    inputs = Inputs(batch, seed)
    x, kernel, before = (
        inputs.tokens(channels),
        inputs.floats(channels, taps),
        inputs.floats(N_ROWS, taps - 1, channels),
    )
    pools: list[F32] = []

    def convolve(backend: Backend, put: Callable[[F32], Tensor]) -> Tensor:
        pools.append(before.copy())
        return backend.causal_conv(put(x), backend.conv_kernel(kernel), pools[-1], batch)

    compare(batch, convolve)
    np.testing.assert_array_equal(*pools)


@cases
@given(batches(), seeds)
def test_delta_gates(batch: Batch, seed: int) -> None:
    inputs = Inputs(batch, seed)
    alpha, beta, a, dt = 20 * inputs.tokens(9), inputs.tokens(9), inputs.floats(9), inputs.floats(9)
    for index in (0, 1):
        compare(batch, lambda backend, put, index=index: backend.delta_gates(put(alpha), put(beta), a, dt)[index])


@cases
@given(batches(), st.sampled_from([5, 32, 40]), seeds)
def test_delta_rule(batch: Batch, dim: int, seed: int) -> None:
    inputs, n_heads = Inputs(batch, seed), 3
    q, k, v = (inputs.tokens(n_heads, dim) for _ in range(3))
    k /= np.linalg.norm(k, axis=-1, keepdims=True)
    decay, strength = -np.abs(inputs.tokens(n_heads)), inputs.tokens(n_heads) ** 2 / 8
    before = inputs.floats(N_ROWS, n_heads, dim, dim)
    pools: list[F32] = []

    def advance(backend: Backend, put: Callable[[F32], Tensor]) -> Tensor:
        pools.append(before.copy())
        return backend.delta_rule(put(q), put(k), put(v), (put(decay), put(strength)), pools[-1], batch)

    compare(batch, advance)
    close(pools[1], pools[0])
    untouched = sorted(set(range(N_ROWS)) - set(batch.rows.tolist()))
    np.testing.assert_array_equal(pools[1][untouched], before[untouched])


@cases
@given(batches(), seeds)
def test_picks_of_valid_tokens(batch: Batch, seed: int) -> None:
    x = Inputs(batch, seed).tokens(6)
    for pick in ("last_valid", "all_valid"):
        results = [np.asarray(getattr(side.backend, pick)(side.put(x, batch), batch)) for side in SIDES.values()]
        np.testing.assert_array_equal(*results)
    np.testing.assert_array_equal(results[0], x[batch.valid][:, None])


@pytest.mark.parametrize("side", SIDES.values(), ids=SIDES)
def test_pools_are_cleared_row_by_row(side: Side) -> None:
    pool: Any = side.backend.zeros((2, 4, 3), np.float32)
    pool[:] = np.nan
    side.backend.clear(pool, 1, 2)
    assert np.isnan(pool).sum() == 18
    side.backend.clear(pool, 1)
    assert np.isnan(pool).sum() == 12
