"""Where the corpus lies, and which part of it stays unlearnt while choices are made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

from decomp_gauntlet.cases import Case, load

MODEL = Path(__file__).parent.parent
FOLDS = 10
"""The corpus is cut into so many parts; one stays unlearnt while recipes are compared and evidence is weighed."""


def corpus(folder: Path) -> list[Case]:
    """All cases of a folder of JSONL files."""
    return [case for path in sorted(folder.glob("*.jsonl")) for case in load(path)]


def held_out_split(cases: Sequence[Case], fold: int = 0) -> tuple[list[Case], list[Case]]:
    """(learnt, held out) by a hash of the id, so that a case stays where it is while the corpus grows."""
    apart = [crc32(case.id.encode()) % FOLDS == fold for case in cases]
    learnt = [case for case, out in zip(cases, apart, strict=True) if not out]
    return learnt, [case for case, out in zip(cases, apart, strict=True) if out]
