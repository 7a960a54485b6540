"""How sure the network must be before anything runs at the same time."""

from __future__ import annotations

from dataclasses import dataclass

from decomp_router.decompose.evidence import Evidence


@dataclass(frozen=True)
class Thresholds:
    """Kept with the artefact, whose card says how they were chosen."""

    independent: float
    """Probability from which up two sub-tasks need no order between them."""
    joint: float
    """Probability from which up a constraint binds all parts together."""
    certainty: float
    """Certainty of the evidence, in log-odds, from which up a plan fans out at all."""
    slope: float = 1.0
    offset: float = 0.0
    """slope * certainty + offset are the log-odds that a fan-out is safe, as observed (Platt 1999)."""

    def __post_init__(self) -> None:
        assert all(0.0 <= value <= 1.0 for value in (self.independent, self.joint)), self

    def odds(self, evidence: Evidence) -> float:
        """Log-odds that a fan-out on this evidence is safe."""
        return self.slope * evidence.certainty + self.offset
