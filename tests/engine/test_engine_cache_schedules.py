"""Any schedule of arrivals, cancellations, forks and turns: the tokens are those of each request alone."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pascal_engine.schedule.sequence import Finished, GenerationRequest, Sequence
from tests.engine.harness import GREEDY, Inbox
from tests.engine.scripted import ScriptedModel, assert_sound, continuation, scheduler_of

LENGTHS = st.sampled_from((1, 5, 17, 40, 63, 64, 65, 100, 128, 129, 200))
BUDGETS = st.sampled_from((0, 3_000, 20_000, 60_000, 1 << 30))


@dataclass(frozen=True)
class Visit:
    """A request and what happens to it: `grows_on` is the earlier visit whose conversation it takes further."""

    prefix: int
    shared: int
    own: int
    arrives: int
    n: int
    cancelled_after: int | None
    branch: bool
    grows_on: int | None
    marks: tuple[int, ...]


VISITS = st.lists(
    st.builds(
        Visit,
        prefix=st.integers(0, 1),
        shared=LENGTHS,
        own=st.sampled_from((1, 2, 20, 70)),
        arrives=st.integers(0, 25),
        n=st.integers(1, 9),
        cancelled_after=st.one_of(st.none(), st.none(), st.integers(0, 8)),
        branch=st.booleans(),
        grows_on=st.one_of(st.none(), st.integers(0, 6)),
        marks=st.lists(st.integers(0, 300), max_size=2).map(tuple),
    ),
    min_size=1,
    max_size=7,
)


class Play:
    """Runs visits through one scheduler and checks it at every step."""

    def __init__(self, visits: list[Visit], slots: int, budget: int, uniform: bool, recurrent: bool) -> None:
        self.uniform, self.recurrent = uniform, recurrent
        self.model = ScriptedModel(uniform=uniform, recurrent=recurrent)
        self.scheduler = scheduler_of(self.model, slots, budget)
        self.visits = visits
        self.prompts: list[tuple[int, ...]] = []
        for index, visit in enumerate(visits):
            self.prompts.append(self._prompt(index, visit))
        self.inboxes = [Inbox() for _ in visits]
        self.sequences: dict[int, Sequence] = {}

    def _prompt(self, index: int, visit: Visit) -> tuple[int, ...]:
        own = tuple((index * 37 + place * 5 + 11) % 251 for place in range(visit.own))
        if visit.grows_on is not None and visit.grows_on < index:
            earlier, n = self.prompts[visit.grows_on], self.visits[visit.grows_on].n
            if len(earlier) < 600:
                return (*earlier, *self.expected(earlier, n), *own)
        return (*((visit.prefix * 100 + place * place) % 251 for place in range(visit.shared)), *own)

    def expected(self, prompt: tuple[int, ...], n: int) -> tuple[int, ...]:
        return tuple(continuation(prompt, n, self.uniform, self.recurrent))

    def run(self) -> None:
        step = 0
        while len(self.sequences) < len(self.visits) or self.scheduler.has_work:
            for index, visit in enumerate(self.visits):
                if visit.arrives == step:
                    self.sequences[index] = self._submit(index, visit)
                if visit.cancelled_after is not None and step == visit.arrives + visit.cancelled_after:
                    self.sequences[index].cancelled = True
            self.scheduler.step()
            assert_sound(self.scheduler.cache)
            self._assert_cancelled_are_gone()
            step += 1
            assert step < 2000, "it does not end"
        self._check()

    def _submit(self, index: int, visit: Visit) -> Sequence:
        request = GenerationRequest(
            self.prompts[index],
            visit.n,
            GREEDY,
            ignore_eos=True,
            marks=visit.marks,
            priority="branch" if visit.branch else "interactive",
        )
        return self.scheduler.submit(request, self.inboxes[index].events.append)

    def _assert_cancelled_are_gone(self) -> None:
        held = [slot.sequence for slot in self.scheduler.slots if slot.sequence] + self.scheduler._queue._waiting
        assert not any(sequence.cancelled for sequence in held)

    def _check(self) -> None:
        for index, visit in enumerate(self.visits):
            inbox, expected = self.inboxes[index], self.expected(self.prompts[index], visit.n)
            assert tuple(inbox.tokens) == expected[: len(inbox.tokens)]
            if not self.sequences[index].cancelled:
                assert len(inbox.tokens) == visit.n
            if inbox.events and isinstance(inbox.events[-1], Finished):
                usage = inbox.events[-1].usage
                assert usage.cache_n + usage.prompt_n == len(self.prompts[index])
                assert usage.prompt_n == self.sequences[index].n_prefilled >= 1
        assert sum(sequence.n_prefilled for sequence in self.sequences.values()) == sum(self.model.chunks)


@pytest.mark.parametrize(("uniform", "recurrent"), [(True, True), (False, True), (True, False)])
@settings(max_examples=250, deadline=None, derandomize=True)
@given(visits=VISITS, slots=st.integers(1, 5), budget=BUDGETS)
def test_any_schedule(uniform: bool, recurrent: bool, visits: list[Visit], slots: int, budget: int) -> None:
    Play(visits, slots, budget, uniform, recurrent).run()
