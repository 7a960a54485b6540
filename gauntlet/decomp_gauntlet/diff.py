"""Two reports side by side: what the second does better, worse, and dangerously."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.box import SIMPLE
from rich.markup import escape
from rich.table import Table

from decomp_gauntlet.cases import CaseError

RATES = ("accuracy", "dangerous_rate", "recall", "edge_f1", "span_f1")


@dataclass(frozen=True)
class Diff:
    """What changed from one report to another, over the cases of both."""

    before: dict[str, Any]
    after: dict[str, Any]
    fixed: tuple[str, ...]
    broken: tuple[str, ...]
    newly_dangerous: tuple[str, ...]
    no_longer_dangerous: tuple[str, ...]
    only_in_one: int


def load_report(path: Path) -> dict[str, Any]:
    """A report as `gauntlet run --out` wrote it. Raises CaseError, OSError."""
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        assert {"total", "cases"} <= set(report)
    except (ValueError, AssertionError, TypeError) as error:
        raise CaseError(f"{path} is no report: name a .json file that `gauntlet run --out` wrote") from error
    found: dict[str, Any] = report
    return found


def compare(before: dict[str, Any], after: dict[str, Any]) -> Diff:
    """Case by case, by id."""
    old = {case["id"]: case for case in before["cases"]}
    new = {case["id"]: case for case in after["cases"]}
    both = [name for name in old if name in new]
    return Diff(
        before["total"],
        after["total"],
        fixed=tuple(name for name in both if new[name]["accurate"] and not old[name]["accurate"]),
        broken=tuple(name for name in both if old[name]["accurate"] and not new[name]["accurate"]),
        newly_dangerous=tuple(name for name in both if new[name]["dangerous"] and not old[name]["dangerous"]),
        no_longer_dangerous=tuple(name for name in both if old[name]["dangerous"] and not new[name]["dangerous"]),
        only_in_one=len(old.keys() ^ new.keys()),
    )


def diff_table(diff: Diff) -> Table:
    """Totals, then the cases that changed."""
    caption = f"{diff.only_in_one} cases are in one report only" if diff.only_in_one else None
    table = Table("", "before", "after", "change", title="Gauntlet, two runs", box=SIMPLE, caption=caption)
    for rate in RATES:
        old, new = diff.before[rate], diff.after[rate]
        change = "" if old is None or new is None else f"{100 * (new - old):+.1f}"
        table.add_row(rate.replace("_", " "), _percent(old), _percent(new), change)
    changes = {
        "fixed": diff.fixed,
        "broken": diff.broken,
        "no longer dangerous": diff.no_longer_dangerous,
        "newly dangerous": diff.newly_dangerous,
    }
    for title, names in changes.items():
        table.add_row(title, "", str(len(names)), escape(" ".join(names[:4]) + (" ..." if len(names) > 4 else "")))
    return table


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}%"
