"""Who goes first: interactive requests before branches, prompts of one rank in turn, nobody never."""

from pascal_engine.schedule.admission import PATIENCE
from pascal_engine.schedule.scheduler import Scheduler
from pascal_engine.schedule.sequence import GenerationRequest, Priority, Sequence
from tests.engine.harness import GREEDY, Inbox
from tests.engine.scripted import ScriptedModel, scheduler_of


def submit(
    scheduler: Scheduler, length: int, priority: Priority = "interactive", n: int = 1, token: int = 0
) -> tuple[Sequence, Inbox]:
    inbox = Inbox()
    tokens = tuple((token * 16 + place) % 251 for place in range(length))
    request = GenerationRequest(tokens, n, GREEDY, ignore_eos=True, priority=priority)
    return scheduler.submit(request, inbox.events.append), inbox


def test_waiting_interactive_requests_are_admitted_before_branches() -> None:
    scheduler = scheduler_of(ScriptedModel(), 1, 0)
    submit(scheduler, 5)
    _, branch = submit(scheduler, 5, "branch", token=1)
    _, interactive = submit(scheduler, 5, token=2)
    while not interactive.events:
        scheduler.step()
    assert not branch.events
    scheduler.step()
    assert branch.events


def test_a_branch_in_prefill_yields_to_an_interactive_prompt() -> None:
    scheduler = scheduler_of(ScriptedModel(), 2, 0)
    branch, _ = submit(scheduler, 640, "branch")
    scheduler.step()
    assert branch.n_computed == 64
    _, interactive = submit(scheduler, 128, token=1)
    for _ in range(2):
        scheduler.step()
    assert interactive.tokens
    assert branch.n_computed == 64


def test_prompts_of_one_rank_take_turns() -> None:
    scheduler = scheduler_of(ScriptedModel(), 3, 0)
    sequences = [submit(scheduler, 640, token=token)[0] for token in range(3)]
    for _ in range(9):
        scheduler.step()
    assert [sequence.n_computed for sequence in sequences] == [192, 192, 192]


def test_a_stream_of_short_prompts_does_not_starve_a_long_one() -> None:
    scheduler = scheduler_of(ScriptedModel(), 2, 0)
    long, _ = submit(scheduler, 640)
    for token in range(1, 12):
        submit(scheduler, 20, token=token)
    for _ in range(20):
        scheduler.step()
    assert long.finished


def test_a_branch_in_prefill_is_passed_over_only_so_often() -> None:
    scheduler = scheduler_of(ScriptedModel(), 2, 0, n_ctx=4096)
    branch, _ = submit(scheduler, 200, "branch")
    submit(scheduler, 3000, token=1)
    for _ in range(PATIENCE):
        scheduler.step()
        assert branch.n_computed == 0
    scheduler.step()
    assert branch.n_computed == 64


def test_a_branch_in_the_queue_is_passed_over_only_so_often() -> None:
    scheduler = scheduler_of(ScriptedModel(), 1, 0)
    submit(scheduler, 5)
    _, branch = submit(scheduler, 5, "branch", token=1)
    others = [submit(scheduler, 5, token=token)[1] for token in range(2, PATIENCE + 6)]
    while not branch.events:
        scheduler.step()
    assert sum(bool(other.events) for other in others) == PATIENCE


def test_an_interactive_fork_lifts_the_branch_that_it_waits_for() -> None:
    scheduler = scheduler_of(ScriptedModel(), 3, 0)
    branch, _ = submit(scheduler, 640, "branch")
    rival, _ = submit(scheduler, 640, "branch", token=1)
    scheduler.step()
    scheduler.step()
    submit(scheduler, 641)
    for _ in range(8):
        scheduler.step()
    assert (branch.n_computed, rival.n_computed) == (576, 64)


def test_decoding_goes_on_beside_every_chunk() -> None:
    scheduler = scheduler_of(ScriptedModel(), 3, 0)
    _, talking = submit(scheduler, 5, n=30)
    scheduler.step()
    for token in (1, 2):
        submit(scheduler, 640, token=token)
    for made in range(2, 22):
        scheduler.step()
        assert len(talking.tokens) == made
