"""Tells apart what differs from a solo run: foreign content, more than rounding can do, or maybe rounding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from decomp_gauntlet.bleed.answer import Answer, Ask, Unit

ROUNDING = 1.0
"""Nats. Batches that round otherwise move log-probabilities by some hundredths, with 4-bit weights or caches by tenths;
a greedy choice flips only between tokens that are nearly level."""
RUN_TOKENS, RUN_CHARACTERS = 12, 48
"""So much of another request's answer in a row is no coincidence, unless it is a loop of few tokens."""


class Kind(StrEnum):
    """What is wrong with an answer."""

    FOREIGN = "foreign content"
    CORRUPT = "more than rounding"
    UNEQUAL = "unequal to its twins"
    DIFFERS = "differs from its solo run"

    @property
    def bleeds(self) -> bool:
        """Whether it proves a bleed; a mere difference can come from batches that round otherwise."""
        return self is not Kind.DIFFERS


@dataclass(frozen=True)
class Difference:
    """`at` counts units of the answer from 0; `why` is one sentence without its end."""

    kind: Kind
    at: int
    why: str


Others = Sequence[tuple[Ask, Answer]]


class Judge:
    """Knows every codeword of the run."""

    def __init__(self, codewords: Sequence[str]) -> None:
        self._codewords = codewords

    def stray(self, ask: Ask, answer: Answer) -> Difference | None:
        """A codeword that the request did not hold. No engine may give it, in a solo run neither."""
        for word in self._codewords:
            if answer.holds(word) and word != ask.codeword and not ask.mentions(word):
                return Difference(Kind.FOREIGN, 0, f"holds '{word}', the codeword of another request")
        return None

    def compare(self, ask: Ask, answer: Answer, alone: Answer, others: Others) -> Difference | None:
        """What is wrong with `answer`, `alone` being what the same request got by itself and `others` the solo runs of
        those beside it."""
        if found := self.stray(ask, answer) or self.stray(ask, alone):
            return found
        at = first_difference(answer.units, alone.units)
        if found := _moved(answer, alone, at):
            return found
        if answer.content == alone.content:
            return None
        return (
            _taken_over(ask, answer, alone, at, others)
            or _flipped(answer, alone, at)
            or Difference(Kind.DIFFERS, at, "goes on in another way than alone")
        )


def first_difference(one: Sequence[Unit], other: Sequence[Unit]) -> int:
    """How much both begin with."""
    pairs = zip(one, other, strict=False)
    return next((index for index, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def drift(answer: Answer, alone: Answer) -> float | None:
    """The most by which log-probabilities of the tokens that both share differ, in nats; None where none are given."""
    n_same = first_difference(answer.units, alone.units)
    pairs = zip(answer.steps[:n_same], alone.steps[:n_same], strict=False)
    return max((abs(a.logprob - b.logprob) for a, b in pairs), default=None)


def _moved(answer: Answer, alone: Answer, n_same: int) -> Difference | None:
    for at, (a, b) in enumerate(zip(answer.steps[:n_same], alone.steps[:n_same], strict=False)):
        if (moved := abs(a.logprob - b.logprob)) > ROUNDING:
            return Difference(Kind.CORRUPT, at, f"the log-probability of one same token moved by {moved:.1f} nats")
    return None


def _taken_over(ask: Ask, answer: Answer, alone: Answer, at: int, others: Others) -> Difference | None:
    """A long run behind the first difference that one other request's answer has, and the own solo run has not."""
    size = RUN_TOKENS if answer.tokens or answer.steps else RUN_CHARACTERS
    own = _runs(alone.units, size)
    strangers = [other for other in others if _stranger(ask, other[0])]
    foreign = [(other.label, _runs(run.units, size)) for other, run in strangers]
    for start in range(at, len(answer.units) - size + 1):
        run = answer.units[start : start + size]
        holders = [label for label, runs in foreign if run in runs]
        if len(holders) == 1 and run not in own and len(set(run)) >= size // 4:
            return Difference(Kind.FOREIGN, start, f"goes on with what {holders[0]} was answered")
    return None


def _stranger(ask: Ask, other: Ask) -> bool:
    """Whether nothing excuses that both answers are alike: neither the same chat nor a topic that is in both."""
    return other.codeword != ask.codeword and not ask.mentions(other.topic)


def _runs(units: tuple[Unit, ...], size: int) -> set[tuple[Unit, ...]]:
    return {units[start : start + size] for start in range(len(units) - size + 1)}


def _flipped(answer: Answer, alone: Answer, at: int) -> Difference | None:
    """Another token, though the choice was clear."""
    if at >= min(len(answer.steps), len(alone.steps)):
        return None
    here, there = answer.steps[at], alone.steps[at]
    gap = max(there.shortfall(here.token), here.shortfall(there.token))
    if gap <= ROUNDING:
        return None
    return Difference(Kind.CORRUPT, at, f"another token was chosen, though one led by {gap:.1f} nats")
