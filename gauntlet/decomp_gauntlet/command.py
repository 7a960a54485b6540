"""`decomp-router gauntlet run`: score a set, print the table, write JSON and Markdown."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import httpx
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from decomp_gauntlet.cases import Case, CaseError, load
from decomp_gauntlet.report import Report, markdown, terminal_table
from decomp_gauntlet.score import CaseScore, score
from decomp_gauntlet.solvers import AlwaysChain, InProcess, NeverSplit, OverHttp, Solver, SolverError
from decomp_router.decompose import decomposer

EXAMPLES = """\
examples:
  decomp-router gauntlet run model/corpus/dev              the shipped decomposer on the development set
  decomp-router gauntlet run mine.jsonl --url http://127.0.0.1:8088
                                                           whatever answers POST /decompose there
  decomp-router gauntlet run mine.jsonl --out report       report.json and report.md, with every danger and miss

exit code: 0 fine, 1 a dangerous false parallel was found (more than --allow-dangerous), 2 bad input
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `gauntlet run`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="case sets (.jsonl, .json) or folders of them"
    )
    parser.add_argument("--url", help="judge the service at this URL instead of the decomposer in this process")
    parser.add_argument("--out", type=Path, metavar="NAME", help="write NAME.json and NAME.md")
    parser.add_argument(
        "--allow-dangerous", type=int, default=0, metavar="N", help="exit 0 with up to N dangerous cases (default 0)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Score and report; the exit code is the verdict."""
    try:
        cases = [case for path in _expand(arguments.files) for case in load(path)]
        if not cases:
            raise CaseError("no cases in the files given: name a .jsonl file that holds some")
        if arguments.out is not None:  # known before the work, not after it
            arguments.out.parent.mkdir(parents=True, exist_ok=True)
            _beside(arguments.out, ".json").touch()
        with httpx.Client(timeout=60) as client:
            solver = OverHttp(arguments.url, client) if arguments.url else InProcess(decomposer.load())
            report = judge(solver, cases)
    except OSError as error:
        print(f"decomp-router gauntlet: {error.filename or ''} {error.strerror or error}".strip(), file=sys.stderr)
        return 2
    except (CaseError, SolverError, UnicodeDecodeError) as error:
        print(f"decomp-router gauntlet: {error}", file=sys.stderr)
        return 2
    _publish(report, arguments.out)
    return 1 if len(report.dangerous) > arguments.allow_dangerous else 0


def _expand(paths: Iterable[Path]) -> list[Path]:
    """Folders stand for the case sets in them."""
    found: list[Path] = []
    for path in paths:
        found += sorted([*path.glob("*.jsonl"), *path.glob("*.json")]) if path.is_dir() else [path]
    return found


def judge(solver: Solver, cases: Sequence[Case]) -> Report:
    """Every case once, with a progress bar on a terminal."""
    scores: list[CaseScore] = []
    milliseconds: list[float] = []
    with Progress(transient=True, console=Console(stderr=True)) as progress:
        for case in progress.track(cases, description="gauntlet"):
            start = time.perf_counter()
            plan = solver.solve(case)
            milliseconds.append((time.perf_counter() - start) * 1e3)
            scores.append(score(case, plan))
    baselines = {b.name: tuple(score(case, b.solve(case)) for case in cases) for b in (NeverSplit(), AlwaysChain())}
    return Report(solver.name, tuple(scores), baselines, tuple(milliseconds))


def _publish(report: Report, out: Path | None) -> None:
    console = Console()
    console.print(terminal_table(report))
    for found in report.dangerous:
        console.print(
            f"[bold red]dangerous[/] {escape(found.case.id)}: {escape('; '.join(found.dangerous))}", highlight=False
        )
    if out is not None:
        data, page = _beside(out, ".json"), _beside(out, ".md")
        data.write_text(json.dumps(report.to_json(), indent=1) + "\n", encoding="utf-8")
        page.write_text(markdown(report), encoding="utf-8")
        console.print(f"wrote {data} and {page}")


def _beside(out: Path, suffix: str) -> Path:
    """NAME with a suffix more; a dot in NAME stays."""
    return out.with_name(out.name + suffix)
