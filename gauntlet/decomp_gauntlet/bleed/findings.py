"""What a run found: a row for each check, with all that is wrong in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from decomp_gauntlet.bleed.answer import Answer, Ask
from decomp_gauntlet.bleed.judge import Difference, Judge, Kind, Others, drift

EXCERPT = 60
"""Characters shown of an answer."""


class Verdict(StrEnum):
    """Of a check or of the whole run; `exit_code` tells which."""

    CLEAN = "clean"
    VARIES = "not row-invariant"
    BLED = "bled"

    @property
    def exit_code(self) -> int:
        """0, 3 or 1; 2 is left for what cannot be tested."""
        return {Verdict.CLEAN: 0, Verdict.VARIES: 3, Verdict.BLED: 1}[self]


@dataclass(frozen=True)
class Finding:
    """One answer that is not what it should be; `alone` and `got` are excerpts from around the difference."""

    check: str
    round: int
    request: str
    kind: Kind
    why: str
    alone: str
    got: str


@dataclass
class Row:
    """One check over all rounds."""

    name: str
    n_answers: int = 0
    n_units: int = 0
    n_asked: int = 0
    """Answers that are to hold their codeword."""
    n_keeping: int = 0
    """How many of these do when nobody is beside them; a model too weak to obey keeps none."""
    drift: float | None = None
    """The largest difference of a log-probability, in nats."""
    findings: list[Finding] = field(default_factory=list)
    alone: set[object] = field(default_factory=set)
    """The contents of the solo runs."""

    @property
    def n_bled(self) -> int:
        """Answers that prove a bleed."""
        return sum(finding.kind.bleeds for finding in self.findings)

    @property
    def n_differing(self) -> int:
        """Answers that differ from their solo run, and nothing proves a bleed."""
        return len(self.findings) - self.n_bled

    @property
    def verdict(self) -> Verdict:
        """The worst that was found."""
        if self.n_bled:
            return Verdict.BLED
        return Verdict.VARIES if self.findings else Verdict.CLEAN

    def compare(self, judge: Judge, number: int, ask: Ask, answer: Answer, alone: Answer, others: Others) -> None:
        """Judges one answer of a round."""
        self.judged(number, ask, answer, alone, judge.compare(ask, answer, alone, others))

    def judged(self, number: int, ask: Ask, answer: Answer, alone: Answer, difference: Difference | None) -> None:
        """Counts one answer, and notes what is wrong with it."""
        self.n_answers += 1
        self.n_units += len(answer.units)
        self.alone.add(alone.content)
        moved = drift(answer, alone)
        self.drift = max((value for value in (self.drift, moved) if value is not None), default=None)
        if difference is not None:
            at, kind, why = difference.at, difference.kind, difference.why
            excerpts = excerpt(alone, at), excerpt(answer, at)
            self.findings.append(Finding(self.name, number, ask.label, kind, why, *excerpts))

    def kept(self, ask: Ask, alone: Answer) -> None:
        """Counts whether the model obeys when nobody is beside it."""
        self.n_asked += 1
        self.n_keeping += alone.holds(ask.codeword)

    def to_json(self) -> dict[str, Any]:
        """The row as data."""
        return {
            "check": self.name,
            "verdict": self.verdict,
            "answers": self.n_answers,
            "units": self.n_units,
            "codewords_asked": self.n_asked,
            "codewords_kept_alone": self.n_keeping,
            "bled": self.n_bled,
            "differ_from_solo": self.n_differing,
            "max_logprob_drift": self.drift,
            "findings": [vars(finding) for finding in self.findings],
        }


def excerpt(answer: Answer, at: int) -> str:
    """The text around unit `at`; with token ids where it cannot be known which text is theirs."""
    if answer.steps:
        at = len("".join(step.text for step in answer.steps[:at]))
    elif answer.tokens:
        near = " ".join(map(str, answer.tokens[max(0, at - 2) : at + 10]))
        return f"{answer.text[:EXCERPT]} (tokens {near})"
    start = max(0, at - EXCERPT // 3)
    return answer.text[start : start + EXCERPT]
