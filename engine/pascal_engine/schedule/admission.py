"""The queue before the slots: bounded, interactive requests first, nobody passed over for ever."""

import threading
from collections.abc import Collection

from pascal_engine.errors import QueueFullError
from pascal_engine.schedule.sequence import Sequence

PATIENCE = 16
"""How often a branch lets others go first before it counts as interactive."""


def rank(sequence: Sequence) -> int:
    """0 for what goes first, 1 for what yields to it."""
    return int(sequence.request.priority == "branch" and sequence.passed_over < PATIENCE)


class WaitingQueue:
    """Sequences that wait for a slot; may be used from any thread."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: list[Sequence] = []
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, sequence: Sequence) -> None:
        """Raises `QueueFullError` where too many wait."""
        self.drop_cancelled()
        with self._lock:
            if len(self._waiting) >= self._most:
                raise QueueFullError(f"{len(self._waiting)} requests wait for a slot already; try again later")
            self._waiting.append(sequence)

    def drop_cancelled(self) -> None:
        """Lets those go whose client went away."""
        with self._lock:
            self._waiting = [sequence for sequence in self._waiting if not sequence.cancelled]

    def waiting(self) -> list[Sequence]:
        """Those that wait, the cancelled ones left out."""
        return [sequence for sequence in self._waiting if not sequence.cancelled]

    def take(self, free: Collection[int]) -> tuple[Sequence, int] | None:
        """The next one to be served and its slot, of those that are `free`; or None.

        Who names a slot waits for that one while others pass by, and others leave it alone as long as they have a
        choice. For the last one free it is first come, first served, so that nobody waits for ever.
        """
        waiting = self.waiting()
        candidates = [sequence for sequence in waiting if sequence.request.slot in (None, *free)]
        if not candidates:
            return None
        first = min(candidates, key=lambda sequence: (rank(sequence), sequence.task))
        for sequence in candidates:
            sequence.passed_over += sequence.task < first.task
        first.passed_over = 0
        with self._lock:
            self._waiting.remove(first)
        if first.request.slot is not None:
            return first, first.request.slot
        awaited = {sequence.request.slot for sequence in waiting}
        return first, min(free, key=lambda slot: (slot in awaited, slot))
