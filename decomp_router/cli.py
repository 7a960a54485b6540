"""`decomp-router`: serve, decompose, gauntlet, demo."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from rich.console import Console

from decomp_gauntlet import command as gauntlet
from decomp_router import demo
from decomp_router.decompose.decomposer import load
from decomp_router.decompose.drawing import drawing
from decomp_router.decompose.explain import explanation
from decomp_router.decompose.graph_svg import svg
from decomp_router.decompose.response import response
from decomp_router.proxy import serve

DESCRIPTION = """\
Runs the independent sub-tasks of one prompt at the same time, in front of any llama-server-compatible engine.

  serve       stand in front of an engine and fan out where it pays
  decompose   show what the router sees in a prompt
  gauntlet    see for yourself how often it is right
  demo        engine, router and two prompts, from nothing
"""


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    whole = argparse.ArgumentParser(
        prog="decomp-router", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    whole.add_argument("--version", action="version", version=f"decomp-router {version('decomp-router')}")
    commands = whole.add_subparsers(metavar="COMMAND", required=True)
    serving = commands.add_parser("serve", help="run the service")
    serve.add_arguments(serving)
    serving.set_defaults(run=serve.run)
    _add_decompose(commands.add_parser("decompose", help="show the sub-tasks of a prompt and their order"))
    judging = commands.add_parser("gauntlet", help="score the decomposer on labelled prompts, test an engine")
    gauntlet.add_actions(judging)
    showing = commands.add_parser("demo", help="start engine and router and watch two prompts run")
    demo.add_arguments(showing)
    showing.set_defaults(run=demo.run)
    return whole


def _add_decompose(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Reads a prompt and shows its sub-tasks, which of them need which, and what else is in it. "
        "Nothing is sent anywhere."
    )
    parser.add_argument("prompt", nargs="?", help="the prompt; read from standard input when left out or -")
    parser.add_argument("--json", action="store_true", help="print what POST /decompose answers")
    parser.add_argument("--explain", action="store_true", help="show tags, scores, evidence and thresholds too")
    parser.add_argument("--graph", type=Path, metavar="FILE.svg", help="draw what needs what into a picture")
    parser.set_defaults(run=_decompose)


def _decompose(arguments: argparse.Namespace) -> int:
    try:
        prompt = arguments.prompt if arguments.prompt not in (None, "-") else sys.stdin.read()
        decomposer = load()
    except (OSError, UnicodeError) as error:
        print(f"decomp-router decompose: {error}", file=sys.stderr)
        return 2
    begun = time.perf_counter()
    reading = decomposer.read(prompt)
    body = response(reading, (time.perf_counter() - begun) * 1000)
    if arguments.graph is not None:
        try:
            arguments.graph.write_text(svg(reading.plan), encoding="utf-8")
        except OSError as error:
            print(f"decomp-router decompose: {arguments.graph}: {error.strerror}", file=sys.stderr)
            return 2
    if arguments.json:
        print(json.dumps(body, ensure_ascii=False).encode(errors="backslashreplace").decode())
        return 0
    advice = "worth running at the same time" if body["recommend"] else "linear: "
    if not body["recommend"]:
        advice += "answers too short to gain by it" if body["fanout"] else "nothing to run at the same time"
    console = Console(highlight=False)
    if arguments.explain:
        console.print(explanation(decomposer, prompt))
    console.print(drawing(reading), f"[dim]{body['reason']}; {advice} - {body['ms']:.0f} ms[/]")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """The console script; returns the exit code."""
    arguments = parser().parse_args(argv)
    code: int = arguments.run(arguments)
    return code


if __name__ == "__main__":
    sys.exit(main())
