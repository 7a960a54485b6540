"""What speaks for a fan-out, in log-odds, and what each sign counts."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Evidence:
    """Signs from one reading of a prompt; the same fields hold their weights."""

    guard: float = 0.0
    """The guard's logit that the prompt holds anything to run at the same time."""
    weakest: float = 0.0
    """Independence of the least independent pair among those that would run at the same time."""
    bias: float = 1.0
    """Always 1 as evidence; its weight makes the weighed sum the log-odds that a fan-out is safe."""

    def weighed(self, weights: Evidence) -> float:
        """Evidence times weights, summed."""
        mine: dict[str, float] = asdict(self)
        counts: dict[str, float] = asdict(weights)
        return sum(mine[name] * counts[name] for name in mine)


GUARD_AND_PAIR = Evidence(guard=1.0, weakest=1.0, bias=0.0)
"""The plainest weighing: two log-odds added."""
