"""`decomp-router gauntlet bleed URL`: flags, progress, verdict."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from decomp_gauntlet.bleed.checks import CHECKS, Trial
from decomp_gauntlet.bleed.findings import Verdict
from decomp_gauntlet.bleed.report import Report
from decomp_gauntlet.bleed.target import Target, TargetError, Traits

DESCRIPTION = """\
Asks an engine the same things alone and beside others, and compares. Finds answers that hold another request's words,
that go on as another request does, or that are damaged beyond what rounding can do. Works with any model, even one of
random weights, on any engine with OpenAI's /v1/chat/completions; greedy, with a fixed seed.
"""
EXAMPLES = """\
examples:
  decomp-router gauntlet bleed http://127.0.0.1:8080                       with as many slots as the engine says
  decomp-router gauntlet bleed http://127.0.0.1:8080 --slots 8 --rounds 6  more at a time, and longer
  decomp-router gauntlet bleed http://127.0.0.1:8080 --json bleed.json     every finding, for programs

exit code: 0 every answer is that of the solo run, 1 something bled, 2 the engine cannot be tested,
           3 answers differ from their solo run, but nothing proves a bleed: batches may round otherwise
"""
SLOTS = 4
LONG_TOKENS, USUAL_CTX = 2048, 4096


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `gauntlet bleed`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    add = parser.add_argument
    add("url", metavar="URL", help="the engine, with or without /v1")
    add("--slots", type=_number(2), metavar="N", help=f"requests at once (default: what the engine says, or {SLOTS})")
    add("--rounds", type=_number(1), default=2, metavar="N", help="new prompts in each (default 2)")
    add("--max-tokens", type=_number(4), default=48, metavar="N", help="length of an answer (default 48)")
    add("--seed", type=int, default=0, metavar="N", help="of prompts, patterns and the engine's sampling (default 0)")
    add(
        "--timeout",
        type=_number(1),
        default=300,
        metavar="S",
        help="seconds to wait for an answer's next piece (default 300)",
    )
    add("--model", metavar="NAME", help="where an engine serves several (default: its first)")
    add("--api-key", metavar="KEY", help="sent as a bearer token")
    add("--json", type=Path, metavar="FILE", help="write all findings")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, transport: httpx.AsyncBaseTransport | None = None) -> int:
    """Tests and reports; the exit code is the verdict. `transport` stands in for the network."""
    try:
        if arguments.json is not None:
            arguments.json.touch()  # what cannot be written is known before the work
        return asyncio.run(_run(arguments, transport))
    except OSError as error:
        message = f"{error.filename or ''} {error.strerror or error}".strip()
    except httpx.InvalidURL as error:
        message = f"{arguments.url} is no URL ({error}); give one such as http://127.0.0.1:8080."
    except TargetError as error:
        message = str(error)
    except KeyboardInterrupt:
        message = "stopped before the end."
    _complain(message)
    return 2


def _complain(message: str) -> None:
    print(f"decomp-router gauntlet bleed: {message}", file=sys.stderr)


async def _run(arguments: argparse.Namespace, transport: httpx.AsyncBaseTransport | None) -> int:
    async with _client(arguments, transport) as client:
        target = Target(client, arguments.model, arguments.max_tokens, arguments.seed)
        traits = await target.probe()
        n_slots = max(2, arguments.slots or traits.n_slots or SLOTS)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, transient=True, console=Console(stderr=True)) as progress:
            total = arguments.rounds * sum(check.n_requests(n_slots) for check in CHECKS)
            task = progress.add_task(f"bleed, {n_slots} at once", total=total)
            trial = Trial(target, n_slots, _long(traits), arguments.seed, lambda: progress.advance(task))
            failure = await _all_checks(trial, arguments.rounds)
    report = Report(list(trial.rows.values()), traits.extras, str(failure) if failure else None)
    if report.rows:
        _publish(report, arguments)
    if failure is not None:
        if report.verdict is not Verdict.BLED:
            raise failure
        _complain(str(failure))
    if report.tells_nothing:
        raise TargetError("the model answers every prompt alike, so that no mix-up could show; serve another model.")
    return report.verdict.exit_code


async def _all_checks(trial: Trial, rounds: int) -> TargetError | None:
    """What ended the run early, if anything did: what was found until then still counts."""
    try:
        for number in range(1, rounds + 1):
            for check in CHECKS:
                await check.run(trial, number)
    except TargetError as error:
        return error
    return None


def _publish(report: Report, arguments: argparse.Namespace) -> None:
    console = Console(highlight=False)
    console.print(report.table())
    for line in report.lines():
        console.print(line, soft_wrap=True)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(report.to_json(), indent=1) + "\n", encoding="utf-8")


def _client(arguments: argparse.Namespace, transport: httpx.AsyncBaseTransport | None) -> httpx.AsyncClient:
    headers = {"authorization": f"Bearer {arguments.api_key}"} if arguments.api_key else {}
    url = arguments.url.rstrip("/").removesuffix("/v1")
    limits = httpx.Limits(max_connections=None)
    return httpx.AsyncClient(
        base_url=url, headers=headers, timeout=arguments.timeout, limits=limits, transport=transport
    )


def _long(traits: Traits) -> int:
    """Characters of a long prompt: at most half of a slot's context."""
    n_tokens = min(LONG_TOKENS, (traits.n_ctx or USUAL_CTX) // 2)
    return int(n_tokens * traits.chars_per_token)


def _number(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from {least} on")
        return int(text)

    return parse
