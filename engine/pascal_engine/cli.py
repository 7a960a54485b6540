"""The command line: `pascal-engine -m model.gguf` serves a model; a first word like `inspect` is another command."""

import os
import socket
import sys
from pathlib import Path

import uvicorn
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from pascal_engine.engine import Engine, EngineOptions
from pascal_engine.errors import ModelError
from pascal_engine.flags import parse
from pascal_engine.inspection.command import main as inspect
from pascal_engine.server import create_app
from pascal_engine.synth.command import main as synth
from pascal_engine.tools.ab.command import main as ab
from pascal_engine.tools.bench.command import main as bench
from pascal_engine.tools.kld.command import main as kld
from pascal_engine.tools.quantize.command import main as quantize

_COMMANDS = {"inspect": inspect, "synth": synth, "bench": bench, "kld": kld, "quantize": quantize, "ab": ab}
_INTERRUPTED = 130
"""Exit code of a command that Ctrl-C ended, as shells have it."""

_DESCRIPTION = """\
Serves a GGUF model over HTTP, with llama-server's routes and flags. Commands that do other things (each has --help):
  pascal-engine inspect FILE               what a model is made of, and what would fit where
  pascal-engine synth --like MODEL OUT     a file of a real model's shape with random weights, for measuring speed
  pascal-engine bench -m FILE              tokens per second by context depth and number of sequences
  pascal-engine kld A B --text FILE        how far the distributions of two models are apart
  pascal-engine quantize IN OUT            a model's tensors in other number formats
  pascal-engine ab -m FILE --a ... --b ... two sets of flags or builds against each other, fairly

A request's tokens never depend on what runs beside it: alone or with others, in any slot, they are the same.
Architectures: llama, qwen3next, qwen35, qwen35moe. Weights: F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K to
Q6_K, IQ2_XXS, IQ2_XS, IQ2_S, IQ3_XXS, IQ3_S, IQ4_NL, IQ4_XS. Of a split model any part will do."""

_EXAMPLES = """\
examples:
  pascal-engine -m model.gguf                       serve on http://127.0.0.1:8080, one request at a time
  pascal-engine -m model.gguf -np 4 -c 16384        four requests at once, 4096 tokens of context each
  pascal-engine -m model.gguf -t 8 -ctk q8_0        eight threads, keys in 8 bits
  pascal-engine -m model.gguf -ctk f32 -ctv f32     keys and values at full precision
  pascal-engine -m model.gguf --cache-bytes 8GiB    remember more chats, longer

  curl http://127.0.0.1:8080/v1/chat/completions -d '{"messages": [{"role": "user", "content": "Hello"}]}'
"""


def main(argv: list[str] | None = None) -> int:
    """Serves until interrupted, or runs the command that the first argument names. Returns the exit code: 0 after a
    clean end, 2 if the service cannot start or the command cannot do its work."""
    argv = sys.argv[1:] if argv is None else argv
    if argv and argv[0] in _COMMANDS:
        try:
            return _COMMANDS[argv[0]](argv[1:])
        except KeyboardInterrupt:
            return _INTERRUPTED
    settings = parse(argv, os.environ, _DESCRIPTION, _EXAMPLES)
    console = Console(stderr=True, highlight=False)
    options = settings.engine
    try:
        with _bind(settings.host, settings.port) as listener:
            engine = _load(settings.model, options, console)
            listener.listen()
            port = listener.getsockname()[1]
            slots = f"{options.parallel} slot{'s' if options.parallel > 1 else ''} of {engine.scheduler.n_ctx} tokens"
            console.print(
                f"{engine.info.name}: {slots}, listening on http://{settings.host}:{port}",
                soft_wrap=True,
                markup=False,
            )
            app = create_app(engine, settings.server)
            config = uvicorn.Config(app, log_level="warning", lifespan="on", timeout_graceful_shutdown=3)
            uvicorn.Server(config).run(sockets=[listener])
    except (ModelError, _AddressError) as error:
        print(f"pascal-engine: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 0
    return 0


class _AddressError(Exception):
    """The address cannot be listened on."""


def _bind(host: str, port: int) -> socket.socket:
    """A socket bound before the model is loaded, so that a taken port is known at once."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except (OSError, TypeError) as error:  # a host name that no encoding holds is a TypeError
        listener.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise _AddressError(f"cannot listen on {host}:{port} ({reason}); choose another --port or --host.") from error
    return listener


def _load(path: Path, options: EngineOptions, console: Console) -> Engine:
    columns = (TextColumn("loading"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("loading", total=None)
        return Engine.open(path, options, lambda done, total: progress.update(task, completed=done, total=total))


if __name__ == "__main__":
    sys.exit(main())
