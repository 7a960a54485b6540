"""Scores of a whole set: totals, splits, exact bounds; as data, as Markdown and as a terminal table."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.box import SIMPLE
from rich.markup import escape
from rich.table import Table

from decomp_gauntlet.confusion import CLASSES, classes, lengths, reliability
from decomp_gauntlet.score import CaseScore, Counts

CONFIDENCE = 0.95
FEWEST_OF_A_TAG = 5
"""Tags are free words; of a tag on fewer cases, a rate says nothing."""


def upper_bound(events: int, trials: int, confidence: float = CONFIDENCE) -> float:
    """Exact one-sided upper bound of a rate (Clopper & Pearson 1934): where so few events are just unlikely."""
    if events >= trials:
        return 1.0
    low, high = events / trials, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if at_most(events, trials, middle) > 1 - confidence else (low, middle)
    return high


def at_most(events: int, trials: int, rate: float) -> float:
    """Binomial distribution function."""
    log_in, log_out = math.log(max(rate, 1e-300)), math.log1p(-min(rate, 1 - 1e-16))
    terms = (
        math.lgamma(trials + 1) - math.lgamma(k + 1) - math.lgamma(trials - k + 1) + k * log_in + (trials - k) * log_out
        for k in range(events + 1)
    )
    return math.fsum(math.exp(term) for term in terms)


@dataclass(frozen=True)
class Summary:
    """Figures of one group of cases; rates are 0 to 1, absent where the group has nothing to count."""

    cases: int
    accuracy: float
    dangerous: int
    dangerous_rate: float
    dangerous_upper: float
    at_risk: int
    """Cases that can go wrong: serial, or with an edge."""
    at_risk_rate: float | None
    at_risk_upper: float | None
    recall: float | None
    misses: int
    reversed: int
    dropped: int
    over_serialised_pairs: int
    edge_f1: float | None
    span_f1: float | None


def summarise(scores: Sequence[CaseScore]) -> Summary:
    """The figures of a non-empty group."""
    dangerous = sum(bool(s.dangerous) for s in scores)
    at_risk = sum(s.case.can_go_wrong for s in scores)
    expected = sum(s.case.fanout_expected for s in scores)
    misses = sum(s.miss for s in scores)
    labelled = [s for s in scores if s.case.truth is not None]
    return Summary(
        cases=len(scores),
        accuracy=sum(s.accurate for s in scores) / len(scores),
        dangerous=dangerous,
        dangerous_rate=dangerous / len(scores),
        dangerous_upper=upper_bound(dangerous, len(scores)),
        at_risk=at_risk,
        at_risk_rate=dangerous / at_risk if at_risk else None,
        at_risk_upper=upper_bound(dangerous, at_risk) if at_risk else None,
        recall=1 - misses / expected if expected else None,
        misses=misses,
        reversed=sum(bool(s.reversed_pairs) for s in scores),
        dropped=sum(bool(s.dropped) for s in scores),
        over_serialised_pairs=sum(s.over_serialised_pairs for s in scores),
        edge_f1=sum((s.edges for s in labelled), Counts()).f1,
        span_f1=sum((s.spans for s in labelled), Counts()).f1,
    )


@dataclass(frozen=True)
class Report:
    """One solver's scores over a set, beside the two baselines'."""

    name: str
    scores: tuple[CaseScore, ...]
    baselines: dict[str, tuple[CaseScore, ...]]
    milliseconds: tuple[float, ...]

    @property
    def total(self) -> Summary:
        """All cases."""
        return summarise(self.scores)

    @property
    def dangerous(self) -> tuple[CaseScore, ...]:
        """The cases that must not be."""
        return tuple(s for s in self.scores if s.dangerous)

    def groups(self) -> dict[str, dict[str, Summary]]:
        """By language, class and tag."""
        by: dict[str, dict[str, list[CaseScore]]] = {k: defaultdict(list) for k in ("language", "class", "tag")}
        for s in self.scores:
            by["language"][s.case.lang].append(s)
            by["class"][s.case.cls].append(s)
            for tag in s.case.tags:
                by["tag"][tag].append(s)
        return {
            kind: {
                name: summarise(group)
                for name, group in sorted(found.items())
                if kind != "tag" or len(group) >= FEWEST_OF_A_TAG
            }
            for kind, found in by.items()
        }

    def to_json(self) -> dict[str, Any]:
        """Everything, with one line a case."""
        ordered = sorted(self.milliseconds)
        return {
            "solver": self.name,
            "total": asdict(self.total),
            "baselines": {name: asdict(summarise(scores)) for name, scores in self.baselines.items()},
            "milliseconds": {"median": ordered[len(ordered) // 2], "max": ordered[-1]} if ordered else {},
            "confusion": {"labels": list(CLASSES), "classes": classes(self.scores), "lengths": lengths(self.scores)},
            "reliability": [asdict(found) for found in reliability(self.scores)],
            "groups": {
                kind: {name: asdict(summary) for name, summary in found.items()}
                for kind, found in self.groups().items()
            },
            "cases": [
                {
                    "id": s.case.id,
                    "accurate": s.accurate,
                    "class": s.predicted_cls,
                    "fanout": s.predicted_fanout,
                    "fanout_expected": s.case.fanout_expected,
                    "dangerous": list(s.dangerous),
                    "miss": s.miss,
                    "dropped": s.dropped,
                }
                for s in self.scores
            ],
        }


COLUMNS = ("", "cases", "accuracy", "dangerous", "of at risk", "recall", "reversed", "dropped", "edge F1", "span F1")
CAPTION = "dangerous false parallels must be 0; in brackets the exact 95% bound of their rate"
NARROW, NARROW_COLUMNS = 104, 6
"""A terminal of fewer characters gets the first columns alone."""


def row(name: str, summary: Summary) -> tuple[str, ...]:
    """One line of the table; bounds are one-sided, 95%."""
    return (
        name,
        str(summary.cases),
        _percent(summary.accuracy),
        f"{summary.dangerous} (<{_percent(summary.dangerous_upper)})",
        f"{summary.dangerous}/{summary.at_risk} (<{_percent(summary.at_risk_upper)})",
        _percent(summary.recall),
        str(summary.reversed),
        str(summary.dropped),
        _decimal(summary.edge_f1),
        _decimal(summary.span_f1),
    )


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}%"


def _decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _rows(report: Report, tags: bool) -> Iterable[tuple[str, ...]]:
    yield row(report.name, report.total)
    for name, scores in report.baselines.items():
        yield row(name, summarise(scores))
    for kind, found in report.groups().items():
        if kind != "tag" or tags:
            for name, summary in found.items():
                yield row(f"{kind} {name}", summary)


def terminal_table(report: Report, tags: bool = False, width: int = 80) -> Table:
    """The table for a terminal of `width` characters, with a row for each tag if asked."""
    table = Table(title="Gauntlet", box=SIMPLE, caption=CAPTION)
    columns = len(COLUMNS) if width >= NARROW else NARROW_COLUMNS
    for i, column in enumerate(COLUMNS[:columns]):
        table.add_column(column, justify="right" if i else "left", no_wrap=i == 0)
    for cells in _rows(report, tags):
        table.add_row(*(escape(cell) for cell in cells[:columns]))
    return table


def markdown(report: Report) -> str:
    """The whole report as a Markdown page."""
    lines = ["# Gauntlet report", "", "| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
    lines += ["| " + " | ".join(cells) + " |" for cells in _rows(report, tags=True)]
    for title, chosen in (
        ("Dangerous false parallels", report.dangerous),
        ("Misses (safe, but slow)", tuple(s for s in report.scores if s.miss)),
    ):
        lines += ["", f"## {title}: {len(chosen)}", ""]
        lines += [f"- `{s.case.id}` {_short(s.case.prompt)}{_why(s)}" for s in chosen]
    return "\n".join(lines) + "\n"


def _short(prompt: str) -> str:
    flat = " ".join(prompt.split())
    return flat if len(flat) <= 160 else flat[:157] + "..."


def _why(score: CaseScore) -> str:
    return f" - {'; '.join(score.dangerous)}" if score.dangerous else ""
