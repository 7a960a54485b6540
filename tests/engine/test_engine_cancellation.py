"""200 starts at nearly the same time on 8 slots, a third of them cancelled at any moment."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Literal

import pytest

from pascal_engine.engine import Engine
from pascal_engine.sampling.params import SamplingParams
from pascal_engine.schedule.sequence import Delta, Event, Finished, GenerationRequest, Progress, Sequence
from tests.engine.harness import Inbox, open_tiny, run
from tests.engine.synthetic import Q

STARTS, SLOTS, THREADS, SECONDS = 200, 8, 4, 60
LENGTHS = (3, 20, 64, 65, 130, 150)

Moment = Literal["never", "queued", "prefill", "decode"]


def requests() -> list[GenerationRequest]:
    """24 that differ in prompt, seed and length; some begin alike, and every other one takes nothing from a cache."""
    made = []
    for index in range(24):
        length = LENGTHS[index % len(LENGTHS)]
        prompt = (*range(100, 100 + length // 2), *((place * (index + 3)) % 500 for place in range(length // 2 + 1)))
        sampling = SamplingParams(temperature=1.0, seed=index, repeat_penalty=1.1)
        made.append(
            GenerationRequest(
                prompt, 4 + index % 9, sampling, ignore_eos=True, reuse=bool(index % 2), report_progress=True
            )
        )
    return made


@dataclass
class Client:
    """One start: cancels itself at its moment, and knows when it has nothing more to wait for."""

    engine: Engine
    request: GenerationRequest
    moment: Moment
    inbox: Inbox = field(default_factory=Inbox)
    started: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)
    sequence: Sequence | None = None

    def start(self) -> None:
        self.sequence = self.engine.worker.submit(self.request, self.receive)
        self.started.set()
        if self.moment == "queued":
            self.cancel()

    def receive(self, event: Event) -> None:
        self.inbox.events.append(event)
        if isinstance(event, Progress) and self.moment == "prefill" and not self.over.is_set():
            self.cancel()
        if isinstance(event, Delta) and self.moment == "decode" and len(self.inbox.tokens) == 3:
            self.cancel()
        if not isinstance(event, Progress | Delta):
            self.over.set()

    def cancel(self) -> None:
        assert self.started.wait(SECONDS), "the first event may come before `submit` has returned"
        assert self.sequence is not None
        self.engine.worker.cancel(self.sequence)
        self.over.set()


@pytest.fixture
def path(synthetic: Callable[..., Path]) -> Path:
    """A quantised hybrid model."""
    return synthetic("qwen35moe", Q.Q4_K, Q.Q6_K, Q.Q8_0)


@pytest.fixture
def engine(path: Path) -> Iterator[Engine]:
    """An engine whose thread runs."""
    engine = open_tiny(path, SLOTS, 256, "q8_0")
    engine.worker.start()
    yield engine
    engine.worker.stop()


def test_survivors_of_200_starts_are_not_touched_by_those_cancelled(path: Path, engine: Engine) -> None:
    kinds = requests()
    alone = open_tiny(path, 1, 256, "q8_0")
    solo = {request: run(alone, replace(request, reuse=False))[0].tokens for request in kinds}
    random = Random(5)
    moments: list[Moment] = ["queued", "prefill", "decode"]
    chosen = [random.choice(moments) if n % 3 == 0 else "never" for n in range(STARTS)]
    random.shuffle(chosen)
    clients = [Client(engine, kinds[n % len(kinds)], moment) for n, moment in enumerate(chosen)]
    start_at_once([partial(start_all, clients[n::THREADS]) for n in range(THREADS)])
    for client in clients:
        assert client.over.wait(SECONDS)
    wait_for_a_step(engine)
    assert not engine.scheduler.has_work
    assert all(slot.sequence is None for slot in engine.scheduler.slots)
    for client in clients:
        expected = solo[client.request]
        if client.moment == "never":
            assert isinstance(client.inbox.end, Finished)
            assert client.inbox.tokens == expected
        assert client.inbox.tokens == expected[: len(client.inbox.tokens)]
    assert {moment for client in clients if (moment := cancelled_in(client))} == {"queue", "prefill", "decode"}
    assert_no_slot_is_lost(engine, kinds[:SLOTS], solo)


def cancelled_in(client: Client) -> str | None:
    """Where a cancelled request was when it ended."""
    if client.moment == "never" or any(isinstance(event, Finished) for event in client.inbox.events):
        return None
    if client.inbox.tokens:
        return "decode"
    return "prefill" if client.inbox.events else "queue"


def assert_no_slot_is_lost(
    engine: Engine, some: list[GenerationRequest], solo: dict[GenerationRequest, list[int]]
) -> None:
    clients = [Client(engine, request, "never") for request in some]
    engine.worker.call(lambda: start_all(clients)).result(SECONDS)
    for client in clients:
        assert client.over.wait(SECONDS)
        assert client.inbox.tokens == solo[client.request]
    ends = [client.inbox.end for client in clients]
    assert {end.slot for end in ends if isinstance(end, Finished)} == set(range(SLOTS))


def start_all(clients: list[Client]) -> None:
    for client in clients:
        client.start()


def start_at_once(actions: list[Callable[[], None]]) -> None:
    barrier = threading.Barrier(len(actions))

    def act(action: Callable[[], None]) -> None:
        barrier.wait(SECONDS)
        action()

    threads = [threading.Thread(target=act, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
        assert not thread.is_alive()


def wait_for_a_step(engine: Engine) -> None:
    """A call is answered at the beginning of a step, so that the second one tells that a whole step has passed."""
    for _ in range(2):
        engine.worker.call(lambda: None).result(SECONDS)
