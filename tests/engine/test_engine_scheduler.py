"""Slots, the queue, and the ends that an answer can come to."""

import threading
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from pascal_engine.backend.batch import Batch
from pascal_engine.engine import Engine
from pascal_engine.errors import PromptTooLongError, QueueFullError
from pascal_engine.hybrid.model import Model
from pascal_engine.memory import StatePools
from pascal_engine.schedule.scheduler import Scheduler
from pascal_engine.schedule.sequence import Delta, Event, Failed, Finished, GenerationRequest
from tests.engine.harness import GREEDY, Inbox, drain, open_tiny, run, submit

PROMPT = (40, 50, 60, 70)


@pytest.fixture
def engine(data: Path) -> Engine:
    return open_tiny(data / "llama-tiny.gguf", parallel=2, ctx=80)


def request(n: int | None = 8, *stop: str, prompt: tuple[int, ...] = PROMPT) -> GenerationRequest:
    return GenerationRequest(prompt, n, GREEDY, stop, ignore_eos=True)


def end(inbox: Inbox) -> Finished:
    assert isinstance(inbox.end, Finished)
    return inbox.end


def test_max_tokens_ends_an_answer(engine: Engine) -> None:
    (inbox,) = run(engine, request(8))
    assert len(inbox.tokens) == 8
    assert (end(inbox).reason, end(inbox).truncated, end(inbox).usage.predicted_n) == ("limit", False, 8)


def test_no_tokens_wanted_means_none_made(engine: Engine) -> None:
    (inbox,) = run(engine, request(0))
    assert inbox.tokens == []
    assert end(inbox).usage.prompt_n == 4
    assert end(inbox).usage.predicted_n == 0


def test_a_full_context_ends_an_answer_and_says_so(engine: Engine) -> None:
    (inbox,) = run(engine, request(None))
    assert len(inbox.tokens) == 80 - len(PROMPT)
    assert (end(inbox).reason, end(inbox).truncated) == ("limit", True)


def test_an_end_of_generation_token_ends_an_answer(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    (whole,) = run(engine, request(8))
    third = whole.tokens[2]
    monkeypatch.setattr(type(engine.tokenizer), "end_of_generation", frozenset({third}))
    (inbox,) = run(engine, GenerationRequest(PROMPT, 8, GREEDY))
    assert inbox.tokens == whole.tokens[: whole.tokens.index(third) + 1]
    assert end(inbox).reason == "eos"


def test_a_stop_string_across_tokens_ends_an_answer_and_is_not_shown(engine: Engine) -> None:
    (whole,) = run(engine, request(20))
    stop = whole.text[5:9]
    (inbox,) = run(engine, request(20, stop))
    assert inbox.text == whole.text[: whole.text.index(stop)]
    assert (end(inbox).reason, end(inbox).stopping_word) == ("word", stop)


def test_text_kept_back_for_a_stop_string_comes_at_the_end(engine: Engine) -> None:
    (whole,) = run(engine, request(20))
    (inbox,) = run(engine, request(20, whole.text[-3:] + "never"))
    assert inbox.text == whole.text


def test_a_prompt_that_does_not_fit_is_refused(engine: Engine) -> None:
    run(engine, request(1, prompt=(9,) * 79))
    with pytest.raises(PromptTooLongError, match="has 80 tokens, but a slot's context holds 80"):
        submit(engine, request(1, prompt=(9,) * 80))


def test_the_queue_is_bounded(engine: Engine) -> None:
    scheduler = Scheduler(engine.model, engine.scheduler._pools, engine.tokenizer, lambda: 0.0, max_waiting=1)
    scheduler.submit(request(), lambda event: None)
    with pytest.raises(QueueFullError, match="try again later"):
        scheduler.submit(request(), lambda event: None)


def test_more_requests_than_slots_wait_their_turn(engine: Engine) -> None:
    inboxes = [submit(engine, request(4)) for _ in range(5)]
    engine.scheduler.step()
    assert [slot.sequence.task for slot in engine.scheduler.slots if slot.sequence] == [0, 1]
    drain(engine)
    assert len({tuple(inbox.tokens) for inbox in inboxes}) == 1
    assert [end(inbox).slot for inbox in inboxes][:2] == [0, 1]


def test_decoding_goes_on_while_a_long_prompt_is_prefilled(data: Path) -> None:
    engine = open_tiny(data / "llama-tiny.gguf", parallel=2, ctx=512)
    short = submit(engine, request(20))
    engine.scheduler.step()
    long = submit(engine, request(1, prompt=(9,) * 300))
    for made in range(2, 6):
        engine.scheduler.step()
        assert len(short.tokens) == made
        assert long.events == []
    engine.scheduler.step()
    assert len(long.tokens) == 1


@pytest.mark.parametrize("steps", [0, 1, 2, 5])
def test_a_cancelled_sequence_frees_its_slot_at_once(steps: int, engine: Engine) -> None:
    expected = run(engine, request(8))[0].tokens
    events = Inbox()
    sequence = engine.scheduler.submit(request(None, prompt=(9,) * 70), events.events.append)
    for _ in range(steps):
        engine.scheduler.step()
    sequence.cancelled = True
    engine.scheduler.step()
    assert not engine.scheduler.has_work
    assert all(isinstance(event, Delta) for event in events.events)
    assert [inbox.tokens for inbox in run(engine, request(8), request(8))] == [expected, expected]


def test_times_are_those_of_the_clock(engine: Engine) -> None:
    ticks = iter(range(100))
    scheduler = Scheduler(engine.model, engine.scheduler._pools, engine.tokenizer, lambda: float(next(ticks)))
    inbox = Inbox()
    scheduler.submit(request(3), inbox.events.append)
    while scheduler.has_work:
        scheduler.step()
    usage = end(inbox).usage
    assert (usage.prompt_n, usage.prompt_ms, usage.predicted_n, usage.predicted_ms) == (4, 1000.0, 3, 2000.0)


def test_the_worker_serves_and_a_failed_step_ends_only_its_answers(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    expected = run(engine, request(8))[0].tokens
    forward = Model.forward
    failures = [MemoryError("no room")]

    def failing(self: Model, batch: Batch, pools: StatePools) -> npt.NDArray[np.float32]:
        if failures:
            raise failures.pop()
        return forward(self, batch, pools)

    monkeypatch.setattr(Model, "forward", failing)
    engine.worker.start()
    try:
        first, second = ask(engine), ask(engine)
    finally:
        engine.worker.stop()
    assert isinstance(first.end, Failed)
    assert second.tokens == expected
    assert "a step failed" in caplog.text


def ask(engine: Engine) -> Inbox:
    inbox, done = Inbox(), threading.Event()

    def sink(event: Event) -> None:
        inbox.events.append(event)
        if not isinstance(event, Delta):
            done.set()

    engine.worker.submit(request(8), sink)
    assert done.wait(30)
    return inbox
