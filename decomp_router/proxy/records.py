"""What was decided about the last requests, and what came of it."""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, dataclass, field
from typing import Any

from decomp_router.execute.fanout import Timing
from decomp_router.plan import Decision

_KEPT = 200


@dataclass
class Record:
    """One chat request; it holds no word of the prompt."""

    at: float
    mode: str = "linear"
    reasons: tuple[str, ...] = ()
    width: int = 1
    subtasks: int = 0
    branches: list[Timing] = field(default_factory=list)
    outcome: str = "running"
    seconds: float | None = None

    def decided(self, decision: Decision) -> None:
        """Notes a decision."""
        self.mode, self.reasons = decision.mode, decision.reasons
        self.subtasks = len(decision.plan.subtasks) if decision.plan else 0


class Records:
    """The last records, newest first; a ring that forgets the oldest."""

    def __init__(self) -> None:
        self._ring: deque[Record] = deque(maxlen=_KEPT)

    def add(self, record: Record) -> None:
        """Keeps one more."""
        self._ring.appendleft(record)

    def as_json(self) -> list[dict[str, Any]]:
        """All that is kept, newest first."""
        return [asdict(record) for record in self._ring]
