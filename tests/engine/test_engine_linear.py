"""Products with quantised weights: against the reference, and bit for bit the same in any company."""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pytest
from gguf import GGML_QUANT_SIZES
from gguf.quants import dequantize
from hypothesis import given, settings
from hypothesis import strategies as st

from pascal_engine.backend.cpu import _native
from pascal_engine.backend.cpu.linear import Matrices
from pascal_engine.backend.reference import ReferenceBackend
from pascal_engine.gguf.rows import Rows
from tests.engine.synthetic import Q

F32 = npt.NDArray[np.float32]

FLOATS = (Q.F32, Q.F16, Q.BF16)
BLOCKS_32 = (Q.Q4_0, Q.Q4_1, Q.Q5_0, Q.Q5_1, Q.Q8_0, Q.IQ4_NL)
BLOCKS_256 = (
    *(Q.Q2_K, Q.Q3_K, Q.Q4_K, Q.Q5_K, Q.Q6_K, Q.IQ4_XS),
    *(Q.IQ3_XXS, Q.IQ3_S, Q.IQ2_XXS, Q.IQ2_XS, Q.IQ2_S),
)
TYPES = (*FLOATS, *BLOCKS_32, *BLOCKS_256)
# Where the half-precision scales of a block lie.
HALVES: dict[Q, tuple[int, ...]] = {
    **dict.fromkeys((Q.Q4_1, Q.Q5_1, Q.Q4_K, Q.Q5_K), (0, 2)),
    Q.Q2_K: (80, 82),
    Q.Q3_K: (108,),
    Q.Q6_K: (208,),
}

matrices = Matrices()
reference = ReferenceBackend()


def random_rows(kind: Q, *shape: int, seed: int = 0) -> Rows:
    """Rows [..., rows, inputs] of random bytes, but for scales of sane size."""
    rng = np.random.default_rng((seed, int(kind), *shape))
    if kind in FLOATS:
        values = rng.standard_normal(shape).astype(np.float32)
        halves = values.astype(np.float16), (values.view(np.uint32) >> 16).astype(np.uint16)
        return Rows(kind, shape[-1], dict(zip(FLOATS, (values, *halves), strict=True))[kind].view(np.uint8))
    per_block, n_bytes = GGML_QUANT_SIZES[kind]
    blocks = rng.integers(0, 256, (int(np.prod(shape)) // per_block, n_bytes), dtype=np.uint8)
    for at in HALVES.get(kind, (0,)):
        scales = rng.uniform(0.01, 0.02, len(blocks)) * rng.choice([-1, 1], len(blocks))
        blocks[:, at : at + 2] = scales.astype(np.float16).view(np.uint8).reshape(-1, 2)
    return Rows(kind, shape[-1], blocks.reshape(*shape[:-1], -1))


def random_columns(n: int, n_inputs: int, seed: int = 0) -> F32:
    """Activations [n, 1, inputs], some of them large."""
    rng = np.random.default_rng((seed, n, n_inputs))
    return (rng.standard_normal((n, 1, n_inputs)) * rng.choice([1, 20], n_inputs, p=[0.99, 0.01])).astype(np.float32)


def relative_error(got: F32, expected: F32) -> float:
    return float(np.abs(got - expected).max() / np.abs(expected).max())


@pytest.fixture(params=_native.instruction_sets())
def instructions(request: pytest.FixtureRequest) -> Iterator[str]:
    """The test runs with every instruction set of this machine."""
    _native.set_instructions(request.param)
    yield request.param
    _native.set_instructions(_native.instruction_sets()[-1])


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    yield _native.set_threads
    _native.set_threads(1)


def inputs_of(kind: Q) -> int:
    """Rows that end amid a group of blocks, or amid a vector of floats, where the type allows it."""
    return 2048 if kind in BLOCKS_256 else 544 if kind in BLOCKS_32 else 541


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.name)
def test_embeddings_are_those_of_the_formats_definition(kind: Q) -> None:
    rows = random_rows(kind, 9, inputs_of(kind))
    got = matrices.rows_of(matrices.matrix([rows]), np.array([[3, 8], [0, 3]]))
    expected = dequantize(rows.data, kind)[np.array([[3, 8], [0, 3]])]
    assert np.array_equal(got, expected)


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.name)
def test_products_agree_with_the_reference(kind: Q, instructions: str) -> None:
    rows = random_rows(kind, 37, inputs_of(kind))
    matrix, expected = matrices.matrix([rows]), reference.matrix([rows])
    for n in (1, 2, 5, 64, 67):
        x = random_columns(n, rows.n_inputs)
        assert relative_error(matrices.linear(x, matrix), reference.linear(x, expected)) <= 1e-5


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.name)
def test_a_column_does_not_know_its_neighbours(kind: Q, instructions: str, threads: Callable[[int], None]) -> None:
    rows = random_rows(kind, 75, inputs_of(kind))
    matrix = matrices.matrix([rows])
    x = random_columns(67, rows.n_inputs)
    alone = np.concatenate([matrices.linear(x[i : i + 1], matrix) for i in range(len(x))])
    for n_threads in (1, 2, 3):
        threads(n_threads)
        for n in (*range(1, 10), 63, 64, 65, 67):
            for first in (0, len(x) - n):
                got = matrices.linear(x[first : first + n], matrix)
                assert np.array_equal(got, alone[first : first + n])


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.name)
def test_a_row_does_not_know_its_place(kind: Q, instructions: str) -> None:
    rows = random_rows(kind, 41, inputs_of(kind))
    x = random_columns(6, rows.n_inputs)
    whole = matrices.linear(x, matrices.matrix([rows]))
    order = np.random.default_rng(3).permutation(41)
    assert np.array_equal(matrices.linear(x, matrices.matrix([rows.take(order)])), whole[..., order])


def test_parts_of_different_types_stand_one_behind_the_other(instructions: str) -> None:
    parts = [random_rows(kind, 3 + index, 512) for index, kind in enumerate(TYPES)]
    x = random_columns(3, 512)
    together = matrices.linear(x, matrices.matrix(parts))
    apart = [matrices.linear(x, matrices.matrix([part])) for part in parts]
    assert np.array_equal(together, np.concatenate(apart, axis=-1))
    assert relative_error(together, reference.linear(x, reference.matrix(parts))) <= 1e-5


def test_blocks_of_nothing_and_of_next_to_nothing(instructions: str) -> None:
    for kind in (Q.Q4_K, Q.Q6_K, Q.Q8_0):
        matrix = matrices.matrix([random_rows(kind, 5, 512)])
        x = random_columns(2, 512)
        x[0], x[1, :, 256:] = 1e-38, 0
        assert (matrices.linear(x, matrix)[0] == 0).all()
        assert np.isfinite(matrices.linear(x, matrix)).all()


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.name)
def test_a_nan_does_not_go_unseen(kind: Q, instructions: str) -> None:
    matrix = matrices.matrix([random_rows(kind, 5, 512)])
    for bad in (np.nan, np.inf):
        x = random_columns(3, 512)
        x[1, 0, 100] = bad
        assert (~np.isfinite(matrices.linear(x, matrix))).any(axis=(1, 2)).tolist() == [False, True, False]


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.name)
def test_the_largest_numbers_do_not_overflow(kind: Q, instructions: str) -> None:
    """All bits of the weights set, all activations at the end of their range."""
    rows = random_rows(kind, 2, inputs_of(kind))
    if kind not in FLOATS:
        blocks = rows.data.reshape(-1, GGML_QUANT_SIZES[kind][1])
        kept = [at + byte for at in HALVES.get(kind, (0,)) for byte in (0, 1)]
        blocks[:, [at for at in range(blocks.shape[1]) if at not in kept]] = 255
        blocks[::2, [at for at in range(blocks.shape[1]) if at not in kept]] = 128
    for sign in (1, -1):
        x = np.full((2, 1, rows.n_inputs), sign * 3.0, np.float32)
        expected = reference.linear(x, reference.matrix([rows]))
        assert relative_error(matrices.linear(x, matrices.matrix([rows])), expected) <= 1e-4


class Mixture:
    """A layer of experts in both backends."""

    def __init__(self, gate: Q, up: Q, down: Q, n_experts: int = 7, n_used: int = 3) -> None:
        self.n_used = n_used
        weights = (
            [random_rows(Q.F32, n_experts, 512)],
            [random_rows(kind, n_experts, 256, 512, seed=seed) for seed, kind in enumerate((gate, up))],
            [random_rows(down, n_experts, 512, 256, seed=2)],
        )
        self.router, self.gate_up, self.down = (matrices.matrix(parts) for parts in weights)
        self.expected = [reference.matrix(parts) for parts in weights]

    def __call__(self, x: F32) -> F32:
        return matrices.experts(x, self.router, self.gate_up, self.down, self.n_used)

    def reference(self, x: F32) -> F32:
        return reference.experts(x, *self.expected, self.n_used)


@pytest.mark.parametrize("kinds", [(Q.F32, Q.F32, Q.F32), (Q.Q4_K, Q.Q4_K, Q.Q6_K), (Q.Q5_K, Q.Q8_0, Q.Q5_0)], ids=str)
def test_experts(kinds: tuple[Q, Q, Q], instructions: str, threads: Callable[[int], None]) -> None:
    mixture = Mixture(*kinds)
    x = random_columns(70, 512) / 30
    assert relative_error(mixture(x), mixture.reference(x)) <= 1e-4
    alone = np.concatenate([mixture(x[i : i + 1]) for i in range(len(x))])
    for n_threads in (1, 2, 3):
        threads(n_threads)
        for n in (1, 2, 3, 7, 64, 70):
            assert np.array_equal(mixture(x[-n:]), alone[-n:])
    block = x.reshape(1, 70, 512)
    assert np.array_equal(mixture(block), alone.reshape(block.shape))


def test_equally_probable_experts_are_taken_in_their_order(instructions: str) -> None:
    mixture = Mixture(Q.F32, Q.F32, Q.F32, n_experts=40, n_used=4)
    x = np.zeros((1, 1, 512), np.float32)
    x[..., 0] = 1
    level = Rows(Q.F32, 512, np.zeros((40, 2048), np.uint8))
    mixture.router, mixture.expected[0] = matrices.matrix([level]), reference.matrix([level])
    assert relative_error(mixture(x), mixture.reference(x)) <= 1e-4


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(TYPES), st.integers(1, 70), st.integers(1, 40), st.integers(0, 2**32))
def test_any_shape_agrees_with_the_reference(kind: Q, n_columns: int, n_rows: int, seed: int) -> None:
    n_inputs = GGML_QUANT_SIZES[kind][0] * (1 + seed % 11)
    rows, x = random_rows(kind, n_rows, n_inputs, seed=seed), random_columns(n_columns, n_inputs, seed=seed)
    expected = reference.linear(x, reference.matrix([rows]))
    assert relative_error(matrices.linear(x, matrices.matrix([rows])), expected) <= 1e-4


def test_what_does_not_fit_is_refused() -> None:
    rows = random_rows(Q.Q4_K, 4, 512)
    matrix = matrices.matrix([rows])
    with pytest.raises(ValueError, match="does not fit"):
        matrices.linear(random_columns(1, 256), matrix)
    with pytest.raises(ValueError, match="rows do not hold"):
        matrices.matrix([Rows(Q.Q6_K, 512, rows.data)])
    with pytest.raises(ValueError, match="unknown type"):
        matrices.matrix([Rows(Q.TQ1_0, 512, rows.data)])
    with pytest.raises(ValueError, match="no such token"):
        matrices.rows_of(matrix, np.array([[4]]))
    with pytest.raises(ValueError, match="instruction set"):
        _native.set_instructions("x87")
