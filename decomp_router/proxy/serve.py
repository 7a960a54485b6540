"""`decomp-router serve`: the service in front of an engine that runs, or together with the bundled one."""

from __future__ import annotations

import argparse
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx
import uvicorn
from rich.console import Console
from starlette.applications import Starlette

from decomp_router.config import Settings, SettingsError, load
from decomp_router.decompose.decomposer import ArtefactError
from decomp_router.decompose.decomposer import load as load_decomposer
from decomp_router.proxy.app import create_app
from decomp_router.proxy.engine import EngineFailed, running_engine
from decomp_router.proxy.httpx_upstream import HttpxUpstream
from decomp_router.proxy.judge import Reader

DESCRIPTION = """\
Stands in front of an LLM engine and hands every request through, byte for byte. With --fanout auto, a chat
request that holds several independent tasks runs as several branches at the same time, on the engine's idle
slots, and the client gets one answer. Clients use the router's address instead of the engine's; nothing else
changes for them."""

EPILOG = """\
examples:
  decomp-router serve --upstream http://127.0.0.1:8080                 pass everything through
  decomp-router serve --upstream http://127.0.0.1:8080 --fanout auto   fan out where it pays
  decomp-router serve --engine model.gguf --fanout auto                start the bundled engine as well
  decomp-router serve --engine model.gguf -- -c 16384                  flags after -- go to that engine

Settings may also stand in a TOML file (--config) or in the environment (DECOMP_ROUTER_UPSTREAM, ...).
GET /router/health and /router/decisions tell how the router is, and what it decided last and why."""

_FLAGS = ("upstream", "engine", "host", "port", "fanout", "max_width")


class _CannotStart(Exception):  # noqa: N818 - the name says it
    """Why the service cannot start, in one sentence."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of the command. Their defaults are those of the settings, so that file and environment count."""
    parser.description, parser.epilog = DESCRIPTION, EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("--upstream", metavar="URL", help="the engine's address, without /v1: http://127.0.0.1:8080")
    add("--engine", metavar="FILE", type=Path, help="start the bundled engine with this GGUF file instead")
    add(
        "--fanout",
        choices=("off", "auto"),
        help="auto: run independent tasks of one prompt at the same time (default: off)",
    )
    add("--max-width", metavar="N", type=int, help="branches of one request at the same time, at most (default: 4)")
    add("--host", help="address to listen on (default: 127.0.0.1, this machine only)")
    add("--port", metavar="N", type=int, help="port to listen on, 0 for any (default: 8088)")
    add("--config", metavar="FILE", type=Path, help="a TOML file with settings; flags override it")
    add("engine_flags", nargs="*", metavar="-- ENGINE FLAGS", help="flags for the bundled engine, after --")


def run(arguments: argparse.Namespace) -> int:
    """Serves until interrupted; 0 after a clean end, 2 if the service cannot start."""
    console = Console(stderr=True, highlight=False)
    try:
        settings = _settings(arguments)
        with _bound(settings) as listener, _interrupted_by_sigterm():
            reader = _reader()
            if settings.engine is None:
                _serve(settings, reader, listener, console)
                return 0
            with running_engine(settings.engine, arguments.engine_flags, console) as address:
                _serve(settings.model_copy(update={"upstream": address}), reader, listener, console)
    except (SettingsError, EngineFailed, _CannotStart) as problem:
        print(f"decomp-router: {problem}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 0
    return 0


def _settings(arguments: argparse.Namespace) -> Settings:
    flags = {name: value for name in _FLAGS if (value := getattr(arguments, name)) is not None}
    settings = load(arguments.config, flags)
    if (settings.upstream is None) == (settings.engine is None):
        raise SettingsError("give either --upstream URL (an engine that runs) or --engine FILE (start the bundled one)")
    if arguments.engine_flags and settings.engine is None:
        raise SettingsError("flags after -- are for the bundled engine, which only --engine starts")
    if any(flag.partition("=")[0] in ("--port", "--host") for flag in arguments.engine_flags):
        raise SettingsError("the router chooses where its own engine listens; leave out --port and --host after --")
    if settings.upstream is not None and _is_own_address(settings):
        raise SettingsError(f"the upstream {settings.upstream} is the router's own address; give the engine's")
    return settings


def _is_own_address(settings: Settings) -> bool:
    """A router in front of itself would forward its own requests for ever."""
    url = httpx.URL(settings.upstream or "")
    local = ("127.0.0.1", "localhost", "::1", "0.0.0.0", settings.host)
    return url.host in local and (url.port or {"http": 80, "https": 443}[url.scheme]) == settings.port


def _reader() -> Reader:
    try:
        return load_decomposer()
    except ArtefactError as error:
        raise _CannotStart(str(error)) from error


def _serve(settings: Settings, reader: Reader, listener: socket.socket, console: Console) -> None:
    assert settings.upstream is not None, "an engine has an address by now"
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
    transport = httpx.AsyncHTTPTransport(limits=limits)
    timeout = httpx.Timeout(settings.read_timeout_s, connect=settings.connect_timeout_s)
    upstream = HttpxUpstream(transport, settings.upstream, timeout)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with transport:
            yield

    app = create_app(settings, reader, upstream, lifespan=lifespan)
    host, port = listener.getsockname()[:2]
    said = f"listening on http://{host}:{port}, upstream {settings.upstream}, fan-out {settings.fanout}"
    console.print(said, soft_wrap=True)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        ws="none",
        timeout_graceful_shutdown=3,
    )
    uvicorn.Server(config).run(sockets=[listener])


@contextmanager
def _bound(settings: Settings) -> Iterator[socket.socket]:
    """A socket bound before anything is loaded, so that a taken port is known at once."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((settings.host, settings.port))
        except (OSError, TypeError) as error:  # a host name that no encoding holds is a TypeError
            reason = getattr(error, "strerror", None) or str(error)
            raise _CannotStart(f"cannot listen on {settings.host}:{settings.port} ({reason})") from error
        yield listener


@contextmanager
def _interrupted_by_sigterm() -> Iterator[None]:
    """SIGTERM ends the service as Ctrl-C does, so that the engine is stopped as well."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
