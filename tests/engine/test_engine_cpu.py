"""The CPU backend: the same bits for any number of threads, any chunks and neighbours; its functions' accuracy."""

from collections.abc import Callable, Iterator, Set
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pascal_engine.backend.batch import BLOCK, Batch
from pascal_engine.backend.cpu import CpuBackend, _native, physical_cores
from pascal_engine.backend.protocol import KvKind
from pascal_engine.gguf import ModelFile
from pascal_engine.hybrid.model import Model
from pascal_engine.memory import KvPool, StatePools
from tests.engine.harness import DATA
from tests.engine.synthetic import Q

F32 = npt.NDArray[np.float32]
Q4_K_M = (Q.Q4_K, Q.Q4_K, Q.Q6_K, Q.Q5_K, Q.Q8_0)
N_CTX, ROWS = 256, 6
MODELS = ("llama", "qwen3next", "qwen35", "qwen35moe", "qwen35moe-Q4_K_M")


@pytest.fixture(params=_native.instruction_sets())
def instructions(request: pytest.FixtureRequest) -> Iterator[str]:
    """Kernels for each set of instructions that this machine has, then the best again."""
    _native.set_instructions(request.param)
    yield request.param
    _native.set_instructions(_native.instruction_sets()[-1])


@pytest.fixture(scope="module")
def load(synthetic: Callable[..., Path]) -> Callable[[str], Model]:
    """load(name) of `MODELS`, each loaded once."""
    loaded: dict[str, Model] = {}

    def model(name: str) -> Model:
        arch, _, kind = name.partition("-")
        path = synthetic(arch, *Q4_K_M) if kind else DATA / f"{arch}-tiny.gguf"
        if name not in loaded:
            loaded[name] = Model.load(ModelFile(path), CpuBackend(2), 512, N_CTX)
        return loaded[name]

    return model


def tokens_of(length: int) -> list[int]:
    return [int(token) for token in np.random.default_rng(length).integers(0, 500, length)]


def pools_of(model: Model, kind: KvKind = "f32") -> StatePools:
    return StatePools(CpuBackend(2), model.params, ROWS, N_CTX, kind, kind)


def state(pools: StatePools, row: int) -> bytes:
    """All that the pools hold of a sequence."""
    arrays = [
        array[row]
        for pool in pools.layers
        for array in ((pool.keys, pool.values) if isinstance(pool, KvPool) else (pool.states, pool.conv))
    ]
    return b"".join(array.tobytes() for array in arrays)


def prefill(model: Model, pools: StatePools, row: int, tokens: list[int], stops: Set[int] = frozenset()) -> F32:
    """Computes `tokens` in chunks that end at blocks and at `stops`."""
    at, ends = 0, sorted({*range(BLOCK, len(tokens), BLOCK), *stops, len(tokens)})
    for end in ends:
        logits = model.forward(Batch.prefill(tokens[at:end], at, row), pools)
        at = end
    return logits[0]


def step_by_step(model: Model, pools: StatePools, row: int, tokens: list[int]) -> F32:
    """Computes `tokens` as decode does, one at a time."""
    for position, token in enumerate(tokens):
        logits = model.forward(Batch.decode([token], [position], [row]), pools)
    return logits[0]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", ["f32", "f16", "q8_0", "q4_0"])
def test_chunks_are_bit_for_bit_what_single_steps_are(
    name: str, kind: KvKind, load: Callable[[str], Model], instructions: str
) -> None:
    model, tokens = load(name), tokens_of(75)
    if kind in ("q8_0", "q4_0") and model.params.head_dim % 32:
        pytest.skip("the tiny model's heads are no whole number of blocks")
    chunked, stepped = pools_of(model, kind), pools_of(model, kind)
    logits = prefill(model, chunked, 1, tokens)
    assert logits.tobytes() == step_by_step(model, stepped, 3, tokens).tobytes()
    assert np.isfinite(logits).all()
    assert state(chunked, 1) == state(stepped, 3)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.sampled_from(MODELS), st.integers(1, 200), st.sets(st.integers(1, 199), max_size=4), st.integers(0, ROWS - 1))
def test_neither_chunks_nor_rows_nor_threads_change_a_bit(
    load: Callable[[str], Model], name: str, length: int, stops: set[int], row: int
) -> None:
    model, tokens = load(name), tokens_of(length)
    results = []
    for n_threads, place, ends in ((1, 0, set[int]()), (2, row, stops), (3, row, stops)):
        _native.set_threads(n_threads)
        pools = pools_of(model)
        results.append((prefill(model, pools, place, tokens, {end for end in ends if end < length}), pools, place))
    assert len({logits.tobytes() for logits, _, _ in results}) == 1
    assert len({state(pools, place) for _, pools, place in results}) == 1


@pytest.mark.parametrize("name", MODELS)
def test_neighbours_change_no_bit(name: str, load: Callable[[str], Model], instructions: str) -> None:
    model = load(name)
    lengths = {4: 3, 0: 64, 2: 70, 5: 130, 1: 1}
    alone = {}
    for row, length in lengths.items():
        pools = pools_of(model)
        prefill(model, pools, 0, tokens_of(length))
        logits = [model.forward(Batch.decode([9], [length + i], [0]), pools) for i in range(3)]
        alone[row] = np.concatenate(logits).tobytes(), state(pools, 0)
    shared = pools_of(model)
    for row, length in lengths.items():
        prefill(model, shared, row, tokens_of(length))
    steps = [
        model.forward(Batch.decode([9] * 5, [length + i for length in lengths.values()], list(lengths)), shared)
        for i in range(3)
    ]
    for place, row in enumerate(lengths):
        assert (np.stack([step[place] for step in steps]).tobytes(), state(shared, row)) == alone[row]


def test_chunks_of_several_sequences_in_one_batch(load: Callable[[str], Model]) -> None:
    model, tokens = load("qwen35moe"), tokens_of(BLOCK)
    together, alone = pools_of(model), pools_of(model)
    firsts, lengths = np.array([0, 5, 63]), np.array([64, 7, 1])
    batch = Batch(np.array([tokens] * 3), np.array([0, 64, 0]), firsts, lengths, np.array([4, 0, 2]))
    logits = model.forward(batch, together)
    for i in range(3):
        part = Batch(*(field[i : i + 1] for field in (batch.tokens, batch.starts, firsts, lengths, batch.rows)))
        assert model.forward(part, alone)[0].tobytes() == logits[i].tobytes()
    assert all(state(together, row) == state(alone, row) for row in range(ROWS))


@pytest.mark.parametrize("name", ["llama", "qwen35"])
def test_what_an_earlier_sequence_left_behind_its_pages_is_never_read(name: str, load: Callable[[str], Model]) -> None:
    model, tokens = load(name), tokens_of(70)
    fresh, used = pools_of(model), pools_of(model)
    for pool in used.layers:
        if isinstance(pool, KvPool):
            pool.keys[:] = np.nan
            pool.values[:] = np.inf
    assert prefill(model, fresh, 1, tokens).tobytes() == prefill(model, used, 1, tokens).tobytes()


def units(got: F32, exact: npt.NDArray[np.float64]) -> float:
    """The largest error in units in the last place."""
    return float(np.max(np.abs(got.astype(np.float64) - exact) / np.spacing(np.abs(exact).astype(np.float32))))


def test_sigmoid_and_softplus_are_accurate(instructions: str) -> None:
    backend = CpuBackend(2)
    x = np.linspace(-80, 80, 40_001, dtype=np.float32).reshape(-1, 1, 1)
    exact = x.astype(np.float64)
    assert units(backend.sigmoid_gate(np.ones_like(x), x), 1 / (1 + np.exp(-exact))) <= 3
    ones, zeros = np.ones(1, np.float32), np.zeros(1, np.float32)
    assert units(backend.delta_gates(x, x, ones, zeros)[0], np.logaddexp(0, exact)) <= 4


def test_functions_at_the_edges(instructions: str) -> None:
    x = np.array([-np.inf, -1000, -90, 0, 90, np.inf, np.nan], np.float32).reshape(-1, 1, 1)
    got = CpuBackend(2).sigmoid_gate(np.ones_like(x), x).ravel()
    np.testing.assert_allclose(got, [0, 0, 8.194e-40, 0.5, 1, 1, np.nan], rtol=1e-3, atol=1e-39)


def test_half_precision_is_rounded_as_numpy_does(instructions: str) -> None:
    values = np.concatenate(
        [np.float32(2.0) ** np.arange(-30, 18), np.linspace(-7e4, 7e4, 9999), np.linspace(-1e-4, 1e-4, 9999), [np.inf]]
    ).astype(np.float32)
    values = np.resize(values, (-(-len(values) // 32), 1, 1, 32))
    backend = CpuBackend(2)
    n = len(values)
    keys, pool = backend.kv_pool(n, 1, 1, 32, "f16"), backend.kv_pool(n, 1, 1, 32, "f16")
    backend.attention(values, values, values, keys, pool, Batch.decode([0] * n, [0] * n, list(range(n))))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(keys[:, 0, 0, 0], values[:, 0, 0].astype(np.float16))


def test_a_wrong_shape_is_refused_before_anything_is_written() -> None:
    backend, x = CpuBackend(2), np.zeros((2, 1, 8), np.float32)
    with pytest.raises(ValueError, match="do not fit"):
        backend.add(x, np.zeros((2, 1, 7), np.float32))
    with pytest.raises(ValueError, match="weight"):
        backend.rms_norm(x, np.zeros(3, np.float32), 1e-6)
    with pytest.raises(ValueError, match="no such position"):
        backend.rope(x[..., None], backend.rope_table(4, np.ones(0)), Batch.decode([0, 0], [4, 0], [0, 1]))


def test_threads() -> None:
    assert physical_cores() >= 1
    with pytest.raises(ValueError, match="threads"):
        CpuBackend(0)
