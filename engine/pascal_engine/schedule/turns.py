"""Whose prompt gets the next chunk of prefill, and who waits for whom because they begin alike."""

import itertools
from collections.abc import Collection

from pascal_engine.memory.checkpoints import WORTHWHILE
from pascal_engine.schedule.admission import rank
from pascal_engine.schedule.sequence import Sequence


def leader_of(sequence: Sequence, prefilling: Collection[Sequence]) -> Sequence | None:
    """The sequence whose prefill `sequence` waits for: one that is further on, or came first, and has yet to compute
    tokens that both begin with. Whoever leads is in prefill itself, so a wait ends with the leader's prefill."""

    def ahead(other: Sequence) -> bool:
        shared = sequence.shared_with(other)
        further_on = (-other.n_computed, other.task) < (-sequence.n_computed, sequence.task)
        return further_on and other.n_computed < shared and shared - sequence.n_computed >= WORTHWHILE

    if not sequence.request.reuse:
        return None
    candidates = [other for other in prefilling if ahead(other)]
    return max(candidates, key=lambda other: (sequence.shared_with(other), -other.task), default=None)


def followers_of(leader: Sequence, prefilling: Collection[Sequence]) -> list[Sequence]:
    """Those that wait for `leader`."""
    return [sequence for sequence in prefilling if leader_of(sequence, prefilling) is leader]


class Turns:
    """Deals out chunks: in turn among prompts of one rank, a branch after interactive ones. A leader has the best rank
    among those that wait for it."""

    def __init__(self) -> None:
        self._counter = itertools.count(1)

    def join(self, sequence: Sequence) -> None:
        """`sequence` takes its place behind those whose turn has not come yet."""
        sequence.last_turn = next(self._counter)

    def choose(self, prefilling: Collection[Sequence]) -> Sequence:
        """The sequence that computes the next chunk; whoever was free to and ranked behind it was passed over."""
        ranks: dict[Sequence, int] = {}
        for sequence in prefilling:
            head = sequence
            while (leader := leader_of(head, prefilling)) is not None:
                head = leader
            ranks[head] = min(rank(sequence), ranks.get(head, 1))
        chosen = min(ranks, key=lambda head: (ranks[head], head.last_turn))
        for head in ranks:
            head.passed_over += ranks[head] > ranks[chosen]
        chosen.passed_over = 0
        chosen.last_turn = next(self._counter)
        return chosen
