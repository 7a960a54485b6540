"""The bundled engine as a child process: started with the router, and stopped with it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import httpx
from rich.console import Console

SLOTS = 4
_GRACE_S = 5.0
_POLL_S = 0.1


class EngineFailed(Exception):  # noqa: N818 - the name says it
    """Why the engine did not start, in one sentence."""


def command(model: Path, port: int, flags: Sequence[str]) -> list[str]:
    """How the engine is started; flags of the user's come last, so that they win."""
    own = ["-m", str(model), "-np", str(SLOTS), "--port", str(port)]
    return [sys.executable, "-m", "pascal_engine.cli", *own, *flags]


@contextmanager
def running_engine(model: Path, flags: Sequence[str], console: Console) -> Iterator[str]:
    """The address of an engine that serves the model while the context lasts; raises EngineFailed."""
    port = free_port()
    with running(command(model, port, flags), port, f"starting the engine with {model.name} ...", console) as address:
        yield address


@contextmanager
def running(
    command: Sequence[str], port: int, doing: str, console: Console, environment: Mapping[str, str] | None = None
) -> Iterator[str]:
    """The address of a child process that answers /health while the context lasts; raises EngineFailed."""
    address = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryFile() as log:
        merged = {**os.environ, **(environment or {})}
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=merged)
        try:
            with console.status(doing):
                wait_until_ready(lambda: _healthy(address), process.poll, time.sleep, lambda: _last_line(log))
            yield address
        finally:
            _stop(process)


def wait_until_ready(
    healthy: Callable[[], bool],
    exit_code: Callable[[], int | None],
    sleep: Callable[[float], None],
    last_words: Callable[[], str],
) -> None:
    """Returns as soon as the engine is healthy; raises EngineFailed with its last words if it ends instead."""
    while not healthy():
        if (code := exit_code()) is not None:
            raise EngineFailed(last_words() or f"the engine ended with exit code {code}")
        sleep(_POLL_S)


def _healthy(address: str) -> bool:
    try:
        return httpx.get(f"{address}/health", timeout=2.0, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def _last_line(log: IO[bytes]) -> str:
    log.seek(0)
    lines = log.read().decode(errors="replace").strip().splitlines()
    return lines[-1].removeprefix("pascal-engine: ") if lines else ""


def free_port() -> int:
    """A port that nothing listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
