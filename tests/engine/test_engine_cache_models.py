"""The cache on real arithmetic: bit for bit the logits of requests that reuse nothing."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pascal_engine.backend.reference import ReferenceBackend
from pascal_engine.engine import Engine
from pascal_engine.memory import StatePools
from pascal_engine.sampling.params import SamplingParams
from pascal_engine.schedule.scheduler import Scheduler
from pascal_engine.schedule.sequence import GenerationRequest, Sequence
from tests.engine.harness import Inbox, open_tiny
from tests.engine.synthetic import Q

N = 4
Prompt = tuple[int, ...]


@dataclass
class Runs:
    """Runs requests on one model and remembers what each gives alone, with no cache."""

    engine: Engine
    logits: dict[int, list[bytes]]
    alone: dict[Prompt, tuple[list[int], list[bytes]]] = field(default_factory=dict)
    n_cached: int = 0

    def scheduler(self, slots: int, cache_bytes: int) -> Scheduler:
        model = self.engine.model
        pools = StatePools(ReferenceBackend(), model.params, slots, 512)
        return Scheduler(model, pools, self.engine.tokenizer, lambda: 0.0, cache_bytes=cache_bytes)

    def submit(self, scheduler: Scheduler, prompt: Prompt) -> tuple[Sequence, Inbox]:
        inbox = Inbox()
        sampling = SamplingParams(temperature=1.0, seed=len(prompt))
        request = GenerationRequest(prompt, N, sampling, ignore_eos=True)
        return scheduler.submit(request, inbox.events.append), inbox

    def expected(self, prompt: Prompt) -> tuple[list[int], list[bytes]]:
        if prompt not in self.alone:
            scheduler = self.scheduler(1, 0)
            sequence, inbox = self.submit(scheduler, prompt)
            while scheduler.has_work:
                scheduler.step()
            self.alone[prompt] = inbox.tokens, self.logits.pop(id(sequence))
        return self.alone[prompt]

    def play(self, visits: list[tuple[Prompt, int, int | None]], slots: int, cache_bytes: int) -> None:
        """Visits are prompts, steps of arrival, and steps of cancellation."""
        scheduler = self.scheduler(slots, cache_bytes)
        running: list[tuple[Prompt, Sequence, Inbox]] = []
        step = 0
        while len(running) < len(visits) or scheduler.has_work:
            for prompt, arrival, _ in visits:
                if arrival == step:
                    running.append((prompt, *self.submit(scheduler, prompt)))
            for prompt, sequence, _ in running:
                sequence.cancelled |= any(prompt == other and end == step for other, _, end in visits)
            scheduler.step()
            assert scheduler.cache.used_bytes <= cache_bytes
            step += 1
        for prompt, sequence, inbox in running:
            tokens, logits = self.expected(prompt)
            seen = self.logits.pop(id(sequence), [])
            assert seen == logits[: len(seen)]
            assert sequence.cancelled or inbox.tokens == tokens
            self.n_cached += sequence.n_computed > 0 and len(prompt) - sequence.n_prefilled


@pytest.fixture(scope="module")
def logits() -> Iterator[dict[int, list[bytes]]]:
    """For each sequence the logits that it was given."""
    seen: dict[int, list[bytes]] = {}
    take = Sequence.take

    def recording(self: Sequence, logits: npt.NDArray[np.float32], now: float) -> None:
        seen.setdefault(id(self), []).append(logits.tobytes())
        take(self, logits, now)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sequence, "take", recording)
        yield seen


@pytest.fixture(scope="module", params=["llama", "qwen3next", "qwen35"])
def runs(request: pytest.FixtureRequest, data: Path, logits: dict[int, list[bytes]]) -> Runs:
    return Runs(open_tiny(data / f"{request.param}-tiny.gguf", parallel=1), logits)


@pytest.fixture(scope="module")
def quantised(synthetic: Callable[..., Path], logits: dict[int, list[bytes]]) -> Runs:
    path = synthetic("qwen35moe", Q.Q4_K, Q.Q4_K, Q.Q6_K, Q.Q5_K, Q.Q8_0)
    return Runs(open_tiny(path, parallel=1), logits)


@dataclass(frozen=True)
class Visit:
    prefix: int
    shared: int
    own: int
    turn: bool
    arrival: int
    cancelled_after: int | None


VISITS = st.lists(
    st.builds(
        Visit,
        prefix=st.integers(0, 1),
        shared=st.sampled_from((20, 64, 90, 130)),
        own=st.sampled_from((1, 3, 30)),
        turn=st.booleans(),
        arrival=st.integers(0, 12),
        cancelled_after=st.one_of(st.none(), st.none(), st.integers(1, 6)),
    ),
    min_size=2,
    max_size=5,
)


SLOTS = st.integers(1, 4)
PAGES = st.sampled_from((0, 3, 12, 1000))


@settings(max_examples=75, deadline=None, derandomize=True)
@given(visits=VISITS, slots=SLOTS, pages=PAGES)
def test_any_schedule(visits: list[Visit], slots: int, pages: int, runs: Runs) -> None:
    play(visits, slots, pages, runs)


@settings(max_examples=12, deadline=None, derandomize=True)
@given(visits=VISITS, slots=SLOTS, pages=PAGES)
def test_any_schedule_of_a_quantised_model(visits: list[Visit], slots: int, pages: int, quantised: Runs) -> None:
    play(visits, slots, pages, quantised)


def play(visits: list[Visit], slots: int, pages: int, runs: Runs) -> None:
    """Plays the visits with a cache that has room for about `pages` checkpoints of one page."""
    arrivals = []
    for visit in visits:
        rng = np.random.default_rng(visit.prefix)
        prompt = tuple(rng.integers(0, 500, visit.shared).tolist()) + (visit.own,) * visit.own
        if visit.turn:
            prompt += (*runs.expected(prompt)[0], 7, 8, 9)
        end = None if visit.cancelled_after is None else visit.arrival + visit.cancelled_after
        arrivals.append((prompt, visit.arrival, end))
    pools = runs.scheduler(1, 0)._pools
    runs.play(arrivals, slots, pages * (pools.page_bytes + pools.recurrent_bytes + 1024))


def test_much_was_reused(runs: Runs) -> None:
    runs.play([((5,) * 200, 0, None), ((5,) * 200 + (6, 7), 20, None)], 1, 1 << 30)
    assert runs.n_cached >= 192
