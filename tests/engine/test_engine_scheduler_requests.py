"""What a request may ask of the scheduler: a slot, a time limit, progress, a constraint."""

from collections.abc import Callable
from itertools import count

import numpy as np
import numpy.typing as npt
import pytest

from pascal_engine.errors import NoSuchSlotError
from pascal_engine.sampling.constraint import ConstraintCompiler
from pascal_engine.sampling.params import SamplingError, SamplingParams
from pascal_engine.sampling.sampler import Choice, Sampler
from pascal_engine.schedule.scheduler import Scheduler
from pascal_engine.schedule.sequence import Delta, Failed, Finished, GenerationRequest, Priority, Progress, Sequence
from tests.engine.harness import GREEDY, Inbox, tiny_tokenizer
from tests.engine.scripted import ScriptedModel, continuation, scheduler_of

Asks = dict[str, object]


@pytest.fixture
def scheduler() -> Scheduler:
    """Three slots, an entirely predictable model."""
    return scheduler_of(ScriptedModel(), 3, 0)


def submit(scheduler: Scheduler, *tokens: int, n: int = 4, **asks: object) -> tuple[Sequence, Inbox]:
    inbox = Inbox()
    fields: Asks = {"sampling": GREEDY, "ignore_eos": True} | asks
    request = GenerationRequest(tokens or (1, 2, 3), n, **fields)  # type: ignore[arg-type]
    return scheduler.submit(request, inbox.events.append), inbox


def drain(scheduler: Scheduler) -> None:
    while scheduler.has_work:
        scheduler.step()


def owners(scheduler: Scheduler) -> list[Sequence | None]:
    return [slot.sequence for slot in scheduler.slots]


def test_a_request_gets_the_slot_that_it_names(scheduler: Scheduler) -> None:
    inboxes = {slot: submit(scheduler, slot, 7, slot=slot)[1] for slot in (2, 0, 1)}
    drain(scheduler)
    for slot, inbox in inboxes.items():
        assert isinstance(inbox.end, Finished)
        assert (inbox.end.slot, tuple(inbox.tokens)) == (slot, continuation((slot, 7), 4))


def test_a_request_waits_for_a_busy_slot_and_never_touches_it(scheduler: Scheduler) -> None:
    running, first = submit(scheduler, 5, 6, n=20, slot=1)
    scheduler.step()
    waiting, second = submit(scheduler, 8, 9, slot=1)
    passing, third = submit(scheduler, 10)
    for _ in range(8):
        scheduler.step()
        assert owners(scheduler)[1] is running
        assert not second.events
    assert passing.finished, "others go by to the slots that are free"
    drain(scheduler)
    assert waiting.finished
    for inbox, prompt, n in ((first, (5, 6), 20), (second, (8, 9), 4), (third, (10,), 4)):
        assert tuple(inbox.tokens) == continuation(prompt, n)


def test_an_awaited_slot_is_left_alone_while_there_is_another(scheduler: Scheduler) -> None:
    free, _ = submit(scheduler, 4)
    named, _ = submit(scheduler, 5, slot=0)
    scheduler.step()
    assert owners(scheduler) == [named, free, None]


@pytest.mark.parametrize("priority", ["interactive", "branch"])
def test_a_stream_of_others_does_not_starve_who_waits_for_a_slot(priority: Priority) -> None:
    scheduler = scheduler_of(ScriptedModel(), 1, 0)
    submit(scheduler, 1)
    named, _ = submit(scheduler, 2, slot=0, priority=priority)
    for step in range(300):
        submit(scheduler, 3 + step % 200, n=1)
        scheduler.step()
        if named.finished:
            return
    pytest.fail("it never ran")


def test_those_who_wait_for_one_slot_do_not_starve_others(scheduler: Scheduler) -> None:
    for slot in range(3):
        submit(scheduler, 1, slot=slot)
    free, _ = submit(scheduler, 2)
    for step in range(30):
        submit(scheduler, 3 + step, n=1, slot=step % 3)
        scheduler.step()
    assert free.finished


@pytest.mark.parametrize("slot", [-1, 3])
def test_a_slot_that_does_not_exist_is_refused(slot: int, scheduler: Scheduler) -> None:
    with pytest.raises(NoSuchSlotError, match=f"there is no slot {slot}; slots run from 0 to 2"):
        submit(scheduler, slot=slot)
    assert not scheduler.has_work


def test_a_cancelled_wait_for_a_slot_leaves_the_queue(scheduler: Scheduler) -> None:
    running, _ = submit(scheduler, n=9, slot=0)
    waiting, inbox = submit(scheduler, slot=0)
    scheduler.step()
    waiting.cancelled = True
    drain(scheduler)
    assert running.finished
    assert not inbox.events


def spell(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Answers go like `text`, whatever the logits."""
    script = iter(tiny_tokenizer().encode(text))
    monkeypatch.setattr(Sampler, "sample", lambda self, logits: Choice(next(script), None))


@pytest.fixture
def ticking(scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch) -> Scheduler:
    """Its clock goes on by a second whenever somebody looks."""
    ticks = count()
    monkeypatch.setattr(scheduler, "_clock", lambda: float(next(ticks)))
    return scheduler


def test_a_late_answer_ends_with_its_line(ticking: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line that is unfinished when time is up is finished."""
    spell(monkeypatch, "abc\ndefghi\njkl\n" * 9)
    _, inbox = submit(ticking, n=99, time_limit_ms=8000)
    drain(ticking)
    assert isinstance(inbox.end, Finished)
    assert inbox.end.reason == "limit"
    assert inbox.text == "abc\ndefghi\n"
    assert not inbox.end.truncated


def test_progress_is_told_after_each_chunk(ticking: Scheduler) -> None:
    _, inbox = submit(ticking, *range(150), n=1, report_progress=True)
    drain(ticking)
    steps = [event for event in inbox.events if isinstance(event, Progress)]
    assert [(step.total, step.cache, step.processed) for step in steps] == [(150, 0, 64), (150, 0, 128), (150, 0, 150)]
    assert [step.time_ms for step in steps] == sorted(step.time_ms for step in steps)
    assert isinstance(inbox.events[3], Delta)


def test_progress_tells_what_came_from_the_cache() -> None:
    scheduler = scheduler_of(ScriptedModel(), 1, 1 << 24)
    submit(scheduler, *range(150), n=1)
    drain(scheduler)
    _, inbox = submit(scheduler, *range(150), *range(40), n=1, report_progress=True)
    drain(scheduler)
    first, *_ = inbox.events
    assert isinstance(first, Progress)
    assert 0 < first.cache < first.processed <= first.total == 190


def test_probabilities_come_with_their_tokens(scheduler: Scheduler) -> None:
    _, inbox = submit(scheduler, sampling=SamplingParams(temperature=0, n_probs=2))
    drain(scheduler)
    deltas = [event for event in inbox.events if isinstance(event, Delta)]
    assert [delta.probs[0].token for delta in deltas] == [delta.tokens[0] for delta in deltas]
    assert all(len(delta.probs[0].top) == 2 for delta in deltas)
    _, plain = submit(scheduler)
    drain(scheduler)
    assert not any(event.probs for event in plain.events if isinstance(event, Delta))


def test_a_bias_for_an_unknown_token_is_refused_before_it_is_queued(scheduler: Scheduler) -> None:
    with pytest.raises(SamplingError, match="names token 9999"):
        submit(scheduler, sampling=SamplingParams(logit_bias=((9999, 1.0),)))
    assert not scheduler.has_work


FAULTS: list[tuple[Callable[..., object], str]] = [
    (lambda self, logits: 1 // 0, "the engine failed while computing this answer; see its log"),
    (Sampler.sample, "no token may follow: each one is banned by 'logit_bias' or against the grammar"),
]


@pytest.mark.parametrize(("sample", "message"), FAULTS, ids=["unforeseen", "all tokens banned"])
def test_a_fault_of_sampling_ends_its_own_request_alone(
    sample: Callable[[Sampler, npt.NDArray[np.float32]], Choice],
    message: str,
    scheduler: Scheduler,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    banned = SamplingParams(logit_bias=tuple((token, -np.inf) for token in range(512)))
    sound, faulty = Sampler.sample, submit(scheduler, sampling=banned)

    def sample_one(self: Sampler, logits: npt.NDArray[np.float32]) -> Choice:
        return (sample if self is faulty[0]._sampler else sound)(self, logits)

    monkeypatch.setattr(Sampler, "sample", sample_one)
    others = [submit(scheduler, 4, token)[1] for token in range(4)]
    drain(scheduler)
    assert faulty[1].events == [Failed(message)]
    assert [tuple(inbox.tokens) for inbox in others] == [continuation((4, token), 4) for token in range(4)]


def test_an_answer_ends_where_its_grammar_lets_nothing_follow(scheduler: Scheduler) -> None:
    """Also where tokens that end an answer are banned."""
    constraint = ConstraintCompiler(tiny_tokenizer()).from_regex("yes|no")
    for ignore_eos, ends in ((True, 0), (False, 1)):
        _, inbox = submit(scheduler, n=99, constraint=constraint, ignore_eos=ignore_eos)
        drain(scheduler)
        assert isinstance(inbox.end, Finished)
        assert (inbox.end.reason, inbox.text in ("yes", "no")) == ("eos", True)
        assert sum(token in tiny_tokenizer().end_of_generation for token in inbox.tokens) == ends
