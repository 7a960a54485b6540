"""Rounds of A, A again and B in changing order, and what follows from them."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Literal

from pascal_engine.tools.ab.arms import Arm, Sample
from pascal_engine.tools.ab.interval import Interval, ratio_interval
from pascal_engine.tools.progress import Report

Phase = Literal["prefill", "decode"]
PHASES: tuple[Phase, ...] = ("prefill", "decode")


@dataclass(frozen=True)
class Round:
    """One sample of each arm, all with the same tokens; `null` is a second one of A."""

    a: Sample
    null: Sample
    b: Sample


def interleave(a: Arm, b: Arm, n_rounds: int, measure: Callable[[Arm, int], Sample], report: Report) -> list[Round]:
    """Rounds in each of which the arms run one after the other, in an order that goes through all six in turn: a
    machine that grows slower, or busy, does the same to all. `measure(arm, seed)` gets another seed in each round."""
    orders, rounds = list(permutations(range(3))), []
    for seed in range(n_rounds):
        samples: dict[int, Sample] = {}
        for place in orders[seed % len(orders)]:
            samples[place] = measure((a, a, b)[place], seed)
            report(3 * seed + len(samples), 3 * n_rounds)
        rounds.append(Round(samples[0], samples[1], samples[2]))
    return rounds


@dataclass(frozen=True)
class SpeedResult:
    """Median tokens a second of both arms, and the intervals of B / A and of A / A."""

    phase: Phase
    a: float
    b: float
    ratio: Interval
    null: Interval

    @classmethod
    def of(cls, phase: Phase, rounds: list[Round], confidence: float) -> "SpeedResult":
        a, null, b = ([getattr(getattr(one, arm), phase) for one in rounds] for arm in ("a", "null", "b"))

        def over_a(speeds: list[float]) -> Interval:
            return ratio_interval([speed / base for speed, base in zip(speeds, a, strict=True)], confidence)

        return cls(phase, median(a), median(b), over_a(b), over_a(null))

    @property
    def verdict(self) -> str:
        if not self.null.contains_one:
            return "not to be trusted: A differs from itself"
        if self.ratio.contains_one:
            return "no difference shown"
        return "B is faster" if self.ratio.low > 1 else "B is slower"


@dataclass(frozen=True)
class OutputResult:
    """In how many rounds B's tokens and its last logits were bit for bit A's, and those of A its own; where bits
    differ and there is a text, `kl` is the mean divergence on it."""

    n_rounds: int
    same_tokens: int
    same_bits: int
    null_same_bits: int
    kl: float | None
    bound: float

    @property
    def agrees(self) -> bool:
        """B computes what A does: the same bits, else a divergence within the bound, else the same tokens."""
        if self.same_bits == self.n_rounds:
            return True
        return self.same_tokens == self.n_rounds if self.kl is None else self.kl <= self.bound

    @property
    def verdict(self) -> str:
        if self.same_bits == self.n_rounds:
            return f"the same bits in all {self.n_rounds} rounds"
        if self.kl is not None:
            side = "within" if self.agrees else "beyond"
            return f"other bits; mean KL divergence {self.kl:.3g}, {side} the bound of {self.bound:g}"
        tokens = f"the same best tokens in {self.same_tokens} of {self.n_rounds} rounds"
        return f"other bits, {tokens}; --text FILE tells how far apart they are"


def judge_outputs(rounds: list[Round], divergence: Callable[[], float] | None, bound: float) -> OutputResult:
    """`divergence` is called only where bits differ."""

    def count(arm: str, digest: str) -> int:
        return sum(getattr(getattr(one, arm), digest) == getattr(one.a, digest) for one in rounds)

    same_bits = count("b", "logits_sha256")
    kl = divergence() if divergence is not None and same_bits < len(rounds) else None
    null_same_bits = count("null", "logits_sha256")
    return OutputResult(len(rounds), count("b", "tokens_sha256"), same_bits, null_same_bits, kl, bound)


def divergence(a: Arm, b: Arm, text: Path, n_chunks: int) -> float:
    """The mean KL divergence of B's distributions from A's on a text."""
    with TemporaryDirectory(prefix="pascal-engine-") as folder:
        logits = Path(folder) / "logits"
        a.save_logits(text, n_chunks, logits)
        return b.divergence_from(logits)["mean_kl"]
