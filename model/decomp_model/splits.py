"""Where the corpus lies, and which part of it stays unlearnt while choices are made."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from decomp_gauntlet.cases import Case, load

MODEL = Path(__file__).parent.parent
FOLDS = 10
"""The corpus is cut into so many parts; one stays unlearnt while recipes are compared and evidence is weighed."""


def corpus(folder: Path) -> list[Case]:
    """All cases of a folder of JSONL files."""
    return [case for path in sorted(folder.glob("*.jsonl")) for case in load(path)]


def held_out_split(cases: Sequence[Case], fold: int = 0) -> tuple[list[Case], list[Case]]:
    """(learnt, held out), the same at every call."""
    shuffled = list(cases)
    random.Random(0).shuffle(shuffled)
    return [case for i, case in enumerate(shuffled) if i % FOLDS != fold], shuffled[fold::FOLDS]
