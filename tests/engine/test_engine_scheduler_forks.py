"""Requests that begin alike and arrive together prefill what they share once."""

import pytest

from pascal_engine.memory import PrefixCache
from pascal_engine.schedule.scheduler import Scheduler
from pascal_engine.schedule.sequence import Finished, GenerationRequest, Sequence
from tests.engine.harness import GREEDY, Inbox
from tests.engine.scripted import ScriptedModel, continuation, scheduler_of

PREFIX = tuple(place * place % 251 for place in range(4000))


def request(tokens: tuple[int, ...], n: int = 3, **more: object) -> GenerationRequest:
    return GenerationRequest(tokens, n, GREEDY, ignore_eos=True, **more)  # type: ignore[arg-type]


def branch(index: int, shared: int = 4000, own: int = 10) -> tuple[int, ...]:
    return (*PREFIX[:shared], *((index + 1) * 40 + place for place in range(own)))


def drain(scheduler: Scheduler) -> None:
    while scheduler.has_work:
        scheduler.step()


def submit(scheduler: Scheduler, tokens: tuple[int, ...], **more: object) -> tuple[Sequence, Inbox]:
    inbox = Inbox()
    return scheduler.submit(request(tokens, **more), inbox.events.append), inbox


def cached(inbox: Inbox) -> int:
    assert isinstance(inbox.end, Finished)
    return inbox.end.usage.cache_n


@pytest.mark.parametrize("budget", [0, 1 << 30])
@pytest.mark.parametrize("slots", [4, 5])
def test_four_forks_prefill_their_prefix_once(slots: int, budget: int) -> None:
    model = ScriptedModel()
    scheduler = scheduler_of(model, slots, budget, n_ctx=4096)
    inboxes = [submit(scheduler, branch(index))[1] for index in range(4)]
    drain(scheduler)
    assert sum(model.chunks) == 4000 + 4 * 10
    assert [cached(inbox) for inbox in inboxes] == [0, 4000, 4000, 4000]


def test_forks_that_wait_for_a_slot_go_on_from_the_cache() -> None:
    model = ScriptedModel()
    scheduler = scheduler_of(model, 1, 1 << 30, n_ctx=4096)
    inboxes = [submit(scheduler, branch(index))[1] for index in range(4)]
    drain(scheduler)
    assert sum(model.chunks) == 4000 + 4 * 10
    assert [cached(inbox) for inbox in inboxes] == [0, 4000, 4000, 4000]


def test_many_in_the_queue_cost_few_stops() -> None:
    model = ScriptedModel()
    scheduler = scheduler_of(model, 1, 1 << 30, n_ctx=4096)
    first, _ = submit(scheduler, PREFIX)
    for shared in range(1000, 1020):
        submit(scheduler, branch(shared, shared))
    while not first.finished:
        scheduler.step()
    assert 63 < len(model.chunks) <= 63 + 2


def test_no_memory_for_a_checkpoint_fails_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = scheduler_of(ScriptedModel(), 1, 1 << 30)

    def fail(*arguments: object) -> bool:
        raise MemoryError

    monkeypatch.setattr(PrefixCache, "put", fail)
    _, inbox = submit(scheduler, PREFIX[:100])
    drain(scheduler)
    assert tuple(inbox.tokens) == continuation(PREFIX[:100], 3)


def test_equal_prompts_compute_only_the_last_token_anew() -> None:
    model = ScriptedModel()
    scheduler = scheduler_of(model, 3, 0, n_ctx=512)
    inboxes = [submit(scheduler, PREFIX[:300])[1] for _ in range(3)]
    drain(scheduler)
    assert sum(model.chunks) == 300 + 2
    assert len({tuple(inbox.tokens) for inbox in inboxes}) == 1


def test_a_late_fork_waits_for_the_prefill_in_progress() -> None:
    model = ScriptedModel()
    scheduler = scheduler_of(model, 2, 0, n_ctx=4096)
    submit(scheduler, branch(0))
    for _ in range(20):
        scheduler.step()
    _, late = submit(scheduler, branch(1))
    drain(scheduler)
    assert cached(late) == 4000
    assert sum(model.chunks) == 4020


def test_forks_of_forks() -> None:
    model = ScriptedModel()
    scheduler = scheduler_of(model, 4, 0, n_ctx=1024)
    deep = (*PREFIX[:300], *range(100))
    inboxes = [submit(scheduler, tokens)[1] for tokens in (branch(0, 300), (*deep, 1), (*deep, 2), branch(1, 300))]
    drain(scheduler)
    assert [cached(inbox) for inbox in inboxes] == [0, 300, 400, 300]


@pytest.mark.parametrize("budget", [0, 1 << 30])
def test_when_the_leader_goes_away_the_next_one_leads(budget: int) -> None:
    model = ScriptedModel()
    scheduler = scheduler_of(model, 3, budget, n_ctx=4096)
    leader, _ = submit(scheduler, branch(0))
    followers = [submit(scheduler, branch(index))[1] for index in (1, 2)]
    for _ in range(10):
        scheduler.step()
    leader.cancelled = True
    drain(scheduler)
    assert [len(inbox.tokens) for inbox in followers] == [3, 3]
    assert [cached(inbox) for inbox in followers] == ([640, 4000] if budget else [0, 4000])


def test_who_shares_little_does_not_wait() -> None:
    scheduler = scheduler_of(ScriptedModel(), 2, 0, n_ctx=4096)
    submit(scheduler, PREFIX)
    _, other = submit(scheduler, (*PREFIX[:10], 250, 249), n=1)
    for _ in range(2):
        scheduler.step()
    assert cached(other) == 0


def test_without_reuse_everything_is_computed() -> None:
    model = ScriptedModel()
    scheduler = scheduler_of(model, 2, 1 << 30, n_ctx=512)
    for _ in range(2):
        for _ in range(2):
            submit(scheduler, PREFIX[:300], reuse=False)
        drain(scheduler)
    assert sum(model.chunks) == 4 * 300


def test_the_point_where_two_requests_part_is_kept_for_a_third() -> None:
    scheduler = scheduler_of(ScriptedModel(), 1, 1 << 30, n_ctx=1024)
    seen = []
    for index in range(3):
        _, inbox = submit(scheduler, branch(index, 700, 70))
        drain(scheduler)
        seen.append(cached(inbox))
    assert seen == [0, 512, 700]


def test_the_second_turn_goes_on_where_the_first_ended() -> None:
    model = ScriptedModel()
    scheduler = scheduler_of(model, 1, 1 << 30, n_ctx=4200)
    _, inbox = submit(scheduler, PREFIX, n=9)
    drain(scheduler)
    assert sum(model.chunks) == 4000
    _, again = submit(scheduler, (*PREFIX, *inbox.tokens, 1, 2, 3))
    drain(scheduler)
    assert cached(again) == 4000 + 8
    assert sum(model.chunks) == 4000 + 1 + 3


def test_what_decode_made_is_not_reused_where_its_bits_are_others() -> None:
    scheduler = scheduler_of(ScriptedModel(uniform=False), 1, 1 << 30, n_ctx=1024)
    first = PREFIX[:200]
    _, inbox = submit(scheduler, first, n=9)
    drain(scheduler)
    turn = (*first, *inbox.tokens, 1, 2, 3)
    _, again = submit(scheduler, turn)
    drain(scheduler)
    assert cached(again) == 200
    assert tuple(again.tokens) == continuation(turn, 3, uniform=False)


def test_an_edited_last_message_keeps_what_was_before_it() -> None:
    scheduler = scheduler_of(ScriptedModel(), 1, 1 << 30, n_ctx=1024)
    history, mark = PREFIX[:333], 333
    for edit, expected in (((5,) * 90, 0), ((6,) * 70, mark), ((7,) * 3, mark)):
        _, inbox = submit(scheduler, (*history, *edit), marks=(mark,))
        drain(scheduler)
        assert cached(inbox) == expected


def test_a_request_given_up_is_not_lost_for_the_next() -> None:
    scheduler = scheduler_of(ScriptedModel(), 1, 1 << 30, n_ctx=1024)
    sequence, _ = submit(scheduler, PREFIX[:700])
    for _ in range(7):
        scheduler.step()
    sequence.cancelled = True
    scheduler.step()
    _, inbox = submit(scheduler, PREFIX[:700])
    drain(scheduler)
    assert cached(inbox) == 7 * 64
