"""`decomp-router gauntlet run | diff | bleed`: score case sets, print tables, write reports and pictures, compare two
runs; `bleed` stands in a package of its own."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import httpx
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from decomp_gauntlet.bleed import command as bleed
from decomp_gauntlet.cases import Case, CaseError, load
from decomp_gauntlet.diff import compare, diff_table, load_report
from decomp_gauntlet.plots import PlotsError, draw
from decomp_gauntlet.report import Report, markdown, terminal_table
from decomp_gauntlet.score import CaseScore, score
from decomp_gauntlet.sets import shipped
from decomp_gauntlet.solvers import AlwaysChain, InProcess, NeverSplit, OverHttp, Solver, SolverError
from decomp_gauntlet.variants import variants
from decomp_router.decompose import decomposer

RUN_EXAMPLES = """\
examples:
  decomp-router gauntlet run                               the shipped decomposer on the shipped sets
  decomp-router gauntlet run mine.jsonl --url http://127.0.0.1:8088
                                                           whatever answers POST /decompose there
  decomp-router gauntlet run --out report --plot report.svg
                                                           report.json and report.md, with every danger and miss,
                                                           and a picture of confusions and reliability
  decomp-router gauntlet run --variants 2000               the same prompts in other clothes: lower case, typos,
                                                           swapped connectives, an added constraint or pasted text

exit code: 0 fine, 1 a dangerous false parallel was found (more than --allow-dangerous), 2 bad input
"""
DIFF_EXAMPLES = """\
example:
  decomp-router gauntlet diff before.json after.json       reports that `gauntlet run --out` wrote

exit code: 0 fine, 1 the second run has a dangerous case that the first had not, 2 bad input
"""


def add_actions(parser: argparse.ArgumentParser) -> None:
    """`run`, `diff` and `bleed`."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    add_arguments(actions.add_parser("run", help="score case sets"))
    comparing = actions.add_parser("diff", help="compare two reports")
    comparing.formatter_class = argparse.RawDescriptionHelpFormatter
    comparing.epilog = DIFF_EXAMPLES
    comparing.add_argument("before", type=Path, help="report (.json) of the first run")
    comparing.add_argument("after", type=Path, help="report (.json) of the second run")
    comparing.set_defaults(run=diff)
    bleed.add_arguments(actions.add_parser("bleed", help="does what runs beside a request show in an engine's answer?"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `gauntlet run`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = RUN_EXAMPLES
    parser.add_argument(
        "files", nargs="*", type=Path, metavar="FILE",
        help="case sets (.jsonl, .json) or folders of them; the shipped sets where none is named",
    )  # fmt: skip
    parser.add_argument("--url", help="judge the service at this URL instead of the decomposer in this process")
    parser.add_argument("--variants", type=int, metavar="N", help="judge N variants made by code, not the prompts")
    parser.add_argument("--seed", type=int, default=0, help="of the variants (default 0)")
    parser.add_argument("--tags", action="store_true", help="a row for each tag too")
    parser.add_argument("--json", action="store_true", help="print the report as JSON instead of the table")
    parser.add_argument("--out", type=Path, metavar="NAME", help="write NAME.json and NAME.md")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw confusions and reliability (.svg or .png)")
    parser.add_argument(
        "--allow-dangerous", type=int, default=0, metavar="N", help="exit 0 with up to N dangerous cases (default 0)"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Score and report; the exit code is the verdict."""
    return _guarded(lambda: _run(arguments))


def diff(arguments: argparse.Namespace) -> int:
    """Compare two reports; the exit code is 1 where something has become dangerous."""
    return _guarded(lambda: _diff(arguments))


def _guarded(work: Callable[[], int]) -> int:
    try:
        return work()
    except OSError as error:
        message = f"{error.filename or ''} {error.strerror or error}".strip()
    except (CaseError, SolverError, PlotsError, UnicodeDecodeError) as error:
        message = str(error)
    print(f"decomp-router gauntlet: {message}", file=sys.stderr)
    return 2


def _diff(arguments: argparse.Namespace) -> int:
    found = compare(load_report(arguments.before), load_report(arguments.after))
    Console().print(diff_table(found))
    return 1 if found.newly_dangerous else 0


def _run(arguments: argparse.Namespace) -> int:
    cases = [case for path in _expand(arguments.files or shipped()) for case in load(path)]
    if arguments.variants is not None:
        cases = [variant for _, variant in variants(cases, arguments.variants, arguments.seed)]
    if not cases:
        raise CaseError("no cases in the files given: name a .jsonl file that holds some")
    _prepare(arguments)
    with httpx.Client(timeout=60) as client:
        solver = OverHttp(arguments.url, client) if arguments.url else InProcess(decomposer.load())
        report = judge(solver, cases)
    _publish(report, arguments)
    return 1 if len(report.dangerous) > arguments.allow_dangerous else 0


def _prepare(arguments: argparse.Namespace) -> None:
    """What cannot be written is known before the work, not after it."""
    if arguments.out is not None:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        _beside(arguments.out, ".json").touch()
    if arguments.plot is not None and arguments.plot.suffix not in (".svg", ".png"):
        raise CaseError(f"{arguments.plot} is neither .svg nor .png: name a file of one of these kinds")


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
            solved = solver.solve(case)
            milliseconds.append((time.perf_counter() - start) * 1e3)
            scores.append(score(case, solved.plan, solved.chance))
    baselines = {
        baseline.name: tuple(score(case, baseline.solve(case).plan) for case in cases)
        for baseline in (NeverSplit(), AlwaysChain())
    }
    return Report(solver.name, tuple(scores), baselines, tuple(milliseconds))


def _publish(report: Report, arguments: argparse.Namespace) -> None:
    console = Console(stderr=arguments.json)
    if arguments.json:
        print(json.dumps(report.to_json(), ensure_ascii=False))
    else:
        console.print(terminal_table(report, arguments.tags, console.width))
        for found in report.dangerous:
            console.print(
                f"[bold red]dangerous[/] {escape(found.case.id)}: {escape('; '.join(found.dangerous))}", highlight=False
            )
    if arguments.out is not None:
        data, page = _beside(arguments.out, ".json"), _beside(arguments.out, ".md")
        data.write_text(json.dumps(report.to_json(), indent=1) + "\n", encoding="utf-8")
        page.write_text(markdown(report), encoding="utf-8")
        console.print(f"wrote {data} and {page}")
    if arguments.plot is not None:
        draw(report, arguments.plot)
        console.print(f"drew {arguments.plot}")


def _beside(out: Path, suffix: str) -> Path:
    """NAME with a suffix more; a dot in NAME stays."""
    return out.with_name(out.name + suffix)
