"""The engine's law: a sequence's numbers do not depend, to the last bit, on what runs beside it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pascal_engine.backend.batch import Batch
from pascal_engine.backend.protocol import Tensor
from pascal_engine.backend.reference import ReferenceBackend
from pascal_engine.backend.reference.gemm import TILE, PinnedGemm, places_agree
from pascal_engine.engine import BackendName, Engine
from pascal_engine.memory import KvPool, StatePools
from pascal_engine.sampling.params import SamplingParams
from pascal_engine.schedule.scheduler import Scheduler
from pascal_engine.schedule.sequence import GenerationRequest
from tests.engine.harness import BACKENDS, Logits, open_tiny
from tests.engine.synthetic import Q

Q4_K_M = (Q.Q4_K, Q.Q4_K, Q.Q6_K, Q.Q5_K, Q.Q8_0)
LENGTHS = (1, 7, 63, 64, 65, 150)
Arrivals = list[tuple[int, int]]


def prompt(length: int) -> tuple[int, ...]:
    rng = np.random.default_rng(length)
    return tuple(int(token) for token in rng.integers(0, 500, length))


def request(length: int) -> GenerationRequest:
    sampling = SamplingParams(temperature=1.0, seed=length)
    return GenerationRequest(prompt(length), 8, sampling, ignore_eos=True)


def scheduler_of(engine: Engine, slots: int) -> Scheduler:
    model = engine.model
    pools = StatePools(ReferenceBackend(), model.params, slots, 256)
    return Scheduler(model, pools, engine.tokenizer, clock=lambda: 0.0)


def play(engine: Engine, slots: int, arrivals: Arrivals, seen: Logits) -> Logits:
    """Logits of each prompt when requests (length, step of arrival) meet in one scheduler."""
    seen.clear()
    scheduler = scheduler_of(engine, slots)
    left = sorted(arrivals, key=lambda arrival: arrival[1])
    step = 0
    while left or scheduler.has_work:
        while left and left[0][1] <= step:
            scheduler.submit(request(left.pop(0)[0]), lambda event: None)
        scheduler.step()
        step += 1
    return dict(seen)


def assert_same_as_alone(engine: Engine, slots: int, arrivals: Arrivals, seen: Logits) -> None:
    together = play(engine, slots, arrivals, seen)
    for length, _ in arrivals:
        alone = play(engine, 1, [(length, 0)], seen)
        assert together[prompt(length)] == alone[prompt(length)]


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> BackendName:
    name: BackendName = request.param
    return name


@pytest.fixture(params=["llama-tiny", "qwen3next-tiny", "qwen35-tiny", "qwen35moe-tiny", "qwen35moe-Q4_K_M"])
def engine(request: pytest.FixtureRequest, backend: BackendName, data: Path, synthetic: Callable[..., Path]) -> Engine:
    arch, kind = request.param.split("-")
    path = synthetic(arch, *Q4_K_M) if kind == "Q4_K_M" else data / f"{arch}-tiny.gguf"
    return open_tiny(path, backend=backend)


def test_six_at_once_are_bit_for_bit_what_each_is_alone(engine: Engine, logits_seen: Logits) -> None:
    assert_same_as_alone(engine, 6, [(length, 0) for length in LENGTHS], logits_seen)


def test_more_sequences_than_a_tile_holds(backend: BackendName, data: Path, logits_seen: Logits) -> None:
    engine = open_tiny(data / "qwen35moe-tiny.gguf", backend=backend)
    assert_same_as_alone(engine, TILE + 3, [(length, 0) for length in range(3, TILE + 6)], logits_seen)


@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    slots=st.integers(1, 5),
    arrivals=st.lists(
        st.tuples(st.sampled_from(LENGTHS), st.integers(0, 9)), min_size=2, max_size=5, unique_by=lambda a: a[0]
    ),
)
@pytest.mark.parametrize("arch", ["qwen3next", "qwen35moe"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_any_arrival_and_any_slot(
    backend: BackendName,
    arch: str,
    slots: int,
    arrivals: Arrivals,
    logits_seen: Logits,
    engines: dict[tuple[str, BackendName], Engine],
) -> None:
    assert_same_as_alone(engines[arch, backend], slots, arrivals, logits_seen)


@pytest.fixture(scope="module")
def engines(data: Path) -> dict[tuple[str, BackendName], Engine]:
    return {
        (arch, backend): open_tiny(data / f"{arch}-tiny.gguf", parallel=1, backend=backend)
        for arch in ("qwen3next", "qwen35moe")
        for backend in BACKENDS
    }


def test_a_batch_is_one_pass_of_each_layer(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = open_tiny(data / "qwen35-tiny.gguf", backend="reference")
    calls: list[int] = []
    rule = ReferenceBackend.delta_rule

    def counting(self: ReferenceBackend, q: Tensor, *rest: Tensor) -> Tensor:
        calls.append(q.shape[0])
        return rule(self, q, *rest)

    monkeypatch.setattr(ReferenceBackend, "delta_rule", counting)
    pools = StatePools(ReferenceBackend(), engine.info.params, 6, 256)
    engine.model.forward(Batch.decode([1, 2, 3], [0, 0, 0], [4, 0, 2]), pools)
    assert calls == [3, 3, 3]


@pytest.mark.parametrize("cuts", [(1,), (63, 65), (10, 40, 64, 66), (64, 127, 128, 149), (3, 4, 5, 6, 100)])
def test_where_chunks_begin_changes_nothing(cuts: tuple[int, ...], engine: Engine) -> None:
    model, tokens = engine.model, list(prompt(150))
    pools = [StatePools(ReferenceBackend(), model.params, 2, 256) for _ in range(2)]
    logits = []
    for edges, pool in (((), pools[0]), (cuts, pools[1])):
        ends = sorted({*edges, 64, 128, 150})
        for start, end in zip([0, *ends], ends, strict=False):
            batch = Batch.prefill(tokens[start:end], start, 1)
            # What stands in the padding is nobody's business.
            padding = np.where(batch.valid, batch.tokens, start % 97 + 100)
            last = model.forward(replace(batch, tokens=padding), pool)
        logits.append(last.tobytes())
    assert logits[0] == logits[1]
    states = []
    for pool in pools:
        snapshot = pool.snapshot(1, 150)
        arrays = [*(array for page in snapshot.kept_pages for array in page), *snapshot.kept_recurrent]
        states.append([array.tobytes() for array in arrays])
    assert states[0] == states[1]


def test_chunks_that_begin_anywhere_share_a_batch(engine: Engine) -> None:
    model, spans = engine.model, [(0, 64), (5, 9), (64, 128), (130, 150)]
    together, alone = (StatePools(ReferenceBackend(), model.params, 4, 256) for _ in range(2))
    for pools in (together, alone):
        for row, (start, _) in enumerate(spans):
            for at in range(0, start, 64):
                model.forward(Batch.prefill(list(prompt(row + 200)[at : min(at + 64, start)]), at, row), pools)
    chunks = [Batch.prefill(list(prompt(row + 200)[start:end]), start, row) for row, (start, end) in enumerate(spans)]
    fields = ("tokens", "starts", "firsts", "lengths", "rows")
    batch = Batch(*(np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in fields))
    logits = model.forward(batch, together)
    for chunk, mine in zip(chunks, logits, strict=True):
        assert model.forward(chunk, alone)[0].tobytes() == mine.tobytes()


def test_what_an_earlier_request_left_cannot_reach_a_later_one(backend: BackendName, data: Path) -> None:
    engine = open_tiny(data / "qwen35-tiny.gguf", backend=backend)
    model, tokens = engine.model, list(prompt(70))
    fresh, used = (StatePools(ReferenceBackend(), model.params, 2, 256) for _ in range(2))
    for pool in used.layers:
        for array in (pool.keys, pool.values) if isinstance(pool, KvPool) else (pool.states, pool.conv):
            array[1] = np.inf
    used.clear(1, 256)
    for start in (0, 64):
        batch = Batch.prefill(tokens[start : start + 64], start, 1)
        logits = [model.forward(batch, pools) for pools in (fresh, used)]
        assert logits[0].tobytes() == logits[1].tobytes()


def test_shapes_whose_tile_is_not_even_are_computed_row_by_row() -> None:
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((48, 32)).astype(np.float32)
    rows = rng.standard_normal((5, 32)).astype(np.float32)
    gemm = PinnedGemm(tiles_agree=lambda weight: False)
    gemm.register(weight)
    alone = np.concatenate([gemm.rows(row[None], weight) for row in rows])
    assert gemm.rows(rows, weight).tobytes() == alone.tobytes()
    np.testing.assert_allclose(alone, rows @ weight.T, rtol=1e-4, atol=1e-4)


def test_the_probe_tells_an_uneven_product(monkeypatch: pytest.MonkeyPatch) -> None:
    weight = np.random.default_rng(0).standard_normal((48, 32)).astype(np.float32)
    assert places_agree(weight)
    uneven = np.linspace(1, 1.001, TILE, dtype=np.float32)
    matmul = np.matmul
    monkeypatch.setattr(np, "matmul", lambda a, b: matmul(a, b) * uneven)
    assert not places_agree(weight)
