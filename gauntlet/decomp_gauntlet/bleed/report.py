"""The findings as a table, as a sentence, and as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.box import SIMPLE
from rich.markup import escape
from rich.table import Table

from decomp_gauntlet.bleed.findings import Finding, Row, Verdict

SHOWN = 2
"""Findings of each check told in full on a terminal; --json has all."""
COLOURS = {Verdict.CLEAN: "green", Verdict.VARIES: "yellow", Verdict.BLED: "bold red"}

WORDS = {Verdict.CLEAN: "clean", Verdict.VARIES: "varies", Verdict.BLED: "bled"}
"""In a table, where there is little room."""


class Report:
    """All rows of a run. `extras` are the optional fields that the engine took; `failure` is why the run ended early,
    if it did."""

    def __init__(self, rows: Sequence[Row], extras: frozenset[str], failure: str | None = None) -> None:
        self.rows = rows
        self.extras = extras
        self.failure = failure

    @property
    def verdict(self) -> Verdict:
        """The worst of all checks."""
        found = {row.verdict for row in self.rows}
        return next((verdict for verdict in (Verdict.BLED, Verdict.VARIES) if verdict in found), Verdict.CLEAN)

    @property
    def tells_nothing(self) -> bool:
        """Whether every request gets the same answer alone, so that no mix-up could show."""
        return len(set().union(*(row.alone for row in self.rows))) <= 1

    def table(self) -> Table:
        """A row for each check."""
        table = Table(box=SIMPLE, padding=(0, 1, 0, 0), show_edge=False)
        table.add_column("check", no_wrap=True)
        for name in ("answers", self._unit, "codewords", "bled", "differ", "drift"):
            table.add_column(name, justify="right")
        table.add_column("verdict", no_wrap=True)
        for row in self.rows:
            verdict = f"[{COLOURS[row.verdict]}]{WORDS[row.verdict]}[/]"
            counts = str(row.n_answers), str(row.n_units), _kept(row), str(row.n_bled), str(row.n_differing)
            table.add_row(row.name, *counts, "-" if row.drift is None else f"{row.drift:.2g}", verdict)
        return table

    def lines(self) -> list[str]:
        """What follows the table, with rich's markup: findings, and the verdict in a sentence."""
        lines = [line for row in self.rows for finding in _worst(row)[:SHOWN] for line in _told(finding)]
        n_more = sum(max(0, len(row.findings) - SHOWN) for row in self.rows)
        if n_more:
            lines.append(f"[dim]and {n_more} more; --json FILE writes all of them[/]")
        early = "until it ended early, " if self.failure else ""
        return [*lines, f"[{COLOURS[self.verdict]}]{self.verdict}[/]: {early}{self._sentence()}"]

    def to_json(self) -> dict[str, Any]:
        """The report as data."""
        return {
            "verdict": self.verdict,
            "ended_early": self.failure,
            "fields_used": sorted(self.extras),
            "checks": [row.to_json() for row in self.rows],
        }

    @property
    def _unit(self) -> str:
        return "tokens" if self.extras & {"tokens", "logprobs"} else "characters"

    def _sentence(self) -> str:
        n = sum(row.n_answers for row in self.rows)
        bled, differing = (sum(row.n_bled for row in self.rows), sum(row.n_differing for row in self.rows))
        if self.verdict is Verdict.BLED:
            also = f"; {differing} more differ from their solo run" if differing else ""
            return f"{bled} of {n} answers depend on what ran beside or before them{also}"
        if self.verdict is Verdict.CLEAN:
            return f"all {n} answers are those that the same requests get alone"
        doubt = "" if "logprobs" in self.extras else (
            "; the engine gives no log-probabilities, so that rounding and damage cannot be told apart"
        )  # fmt: skip
        return f"{differing} of {n} answers differ from their solo run, none shows what belongs to another{doubt}"


def _worst(row: Row) -> list[Finding]:
    """Bleeds first."""
    return sorted(row.findings, key=lambda finding: not finding.kind.bleeds)


def _kept(row: Row) -> str:
    """How much the search for codewords can tell."""
    if not row.n_asked:
        return "-"
    return f"{row.n_keeping}/{row.n_asked}" if row.n_keeping else "n/a"


def _told(finding: Finding) -> list[str]:
    colour = "red" if finding.kind.bleeds else "yellow"
    where = f"{finding.check}, round {finding.round}, {finding.request}"
    head = f"[{colour}]{finding.kind}[/] in {where}: {escape(finding.why)}"
    return [head, f"[dim]  alone {escape(repr(finding.alone))}[/]", f"[dim]  got   {escape(repr(finding.got))}[/]"]
