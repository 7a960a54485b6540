"""Confidence intervals for paired ratios that hold for any symmetric spread, outliers included."""

from dataclasses import dataclass
from itertools import accumulate, combinations_with_replacement
from math import ceil, exp, log, log2
from statistics import median


@dataclass(frozen=True)
class Interval:
    """An estimated ratio and the bounds it lies between."""

    estimate: float
    low: float
    high: float

    @property
    def contains_one(self) -> bool:
        return self.low <= 1 <= self.high

    def __str__(self) -> str:
        return f"{self.estimate:.3f} [{self.low:.3f}, {self.high:.3f}]"


def fewest_rounds(confidence: float) -> int:
    """Pairs that an interval of this confidence takes at least."""
    return ceil(1 - log2(1 - confidence))


def ratio_interval(ratios: list[float], confidence: float) -> Interval:
    """The median of ratios of paired measurements (Hodges and Lehmann's estimator on their logarithms), with the
    interval of all medians that Wilcoxon's signed-rank test does not reject: exact for few pairs, and for every
    distribution whose logarithms are symmetric. That of two measurements of the same thing is, in whatever way they
    scatter. There must be `fewest_rounds(confidence)` ratios."""
    n = len(ratios)
    assert n >= fewest_rounds(confidence), "no interval has this confidence with so few pairs"
    logs = [log(ratio) for ratio in ratios]
    averages = sorted((left + right) / 2 for left, right in combinations_with_replacement(logs, 2))
    outside = _rank_sum_bound(n, (1 - confidence) / 2)
    return Interval(exp(median(averages)), exp(averages[outside]), exp(averages[-1 - outside]))


def _rank_sum_bound(n: int, tail: float) -> int:
    """The largest sum that the ranks 1 to n with a random half of them taken stay at or below with a probability of at
    most `tail`: so many averages lie outside on either side."""
    counts = [1]  # counts[s]: sets of ranks whose sum is s
    for rank in range(1, n + 1):
        longer = [*counts, *[0] * rank]
        for total, count in enumerate(counts):
            longer[total + rank] += count
        counts = longer
    below = list(accumulate(counts))
    return sum(count <= tail * (1 << n) for count in below) - 1
