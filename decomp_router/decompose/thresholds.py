"""How sure the network must be before anything runs at the same time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from decomp_router.decompose.evidence import GUARD_AND_PAIR, Evidence


@dataclass(frozen=True)
class Thresholds:
    """Kept with the artefact, whose card says how they were chosen."""

    independent: float
    """Probability from which up two sub-tasks need no order between them."""
    joint: float
    """Probability from which up a constraint binds all parts together."""
    certainty: float
    """Weighed evidence, in log-odds, from which up a plan fans out at all."""
    weights: Evidence = GUARD_AND_PAIR
    """What each kind of evidence counts."""

    def __post_init__(self) -> None:
        assert all(0.0 <= value <= 1.0 for value in (self.independent, self.joint)), self

    @classmethod
    def of(cls, item: dict[str, Any]) -> Thresholds:
        """As `thresholds.json` spells them."""
        weights = Evidence(**item["weights"]) if "weights" in item else GUARD_AND_PAIR
        return cls(item["independent"], item["joint"], item["certainty"], weights)
