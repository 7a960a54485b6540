"""What speaks for and against a fan-out, in log-odds, and what each counts."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Evidence:
    """Signs from one reading of a prompt; the same fields hold their weights."""

    guard: float = 0.0
    """The guard's logit that the prompt holds anything to run at the same time."""
    weakest: float = 0.0
    """Independence of the least independent pair among those that would run at the same time."""
    joint: float = 0.0
    """The strongest sign of a constraint on the whole answer."""
    spans: float = 0.0
    """How surely the least sure sub-task is one."""
    begins: float = 0.0
    """How surely the least sure sub-task begins where it does."""
    elsewhere: float = 0.0
    """The strongest sign of an ask outside all sub-tasks."""
    tasks: float = 0.0
    """How many sub-tasks there are (a count)."""
    bias: float = 1.0
    """Always 1 as evidence; its weight makes the weighed sum the log-odds that a fan-out is safe."""

    def weighed(self, weights: Evidence) -> float:
        """Evidence times weights, summed."""
        mine: dict[str, float] = asdict(self)
        counts: dict[str, float] = asdict(weights)
        return sum(mine[name] * counts[name] for name in mine)


GUARD_AND_PAIR = Evidence(guard=1.0, weakest=1.0, bias=0.0)
"""The plainest weighing: two log-odds added."""
