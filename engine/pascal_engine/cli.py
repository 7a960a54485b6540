"""The command line: `pascal-engine -m model.gguf` serves a model; `inspect` and `synth` are commands of their own."""

import argparse
import re
import socket
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import uvicorn
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from pascal_engine import __version__
from pascal_engine.engine import Engine, EngineOptions
from pascal_engine.errors import ModelError
from pascal_engine.inspection.command import main as inspect
from pascal_engine.server import create_app
from pascal_engine.synth.command import main as synth
from pascal_engine.tools.ab.command import main as ab
from pascal_engine.tools.bench.command import main as bench
from pascal_engine.tools.kld.command import main as kld
from pascal_engine.tools.quantize.command import main as quantize

_COMMANDS = {"inspect": inspect, "synth": synth, "bench": bench, "kld": kld, "quantize": quantize, "ab": ab}

_DESCRIPTION = """\
Serves a GGUF model over HTTP, with llama-server's routes and flags. Two commands do other things:
  pascal-engine inspect FILE               what a model is made of, and what would fit where
  pascal-engine synth --like MODEL OUT     a file of a real model's shape with random weights, for measuring speed

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
        return _COMMANDS[argv[0]](argv[1:])
    arguments = _parser().parse_args(argv)
    console = Console(stderr=True, highlight=False)
    options = EngineOptions(
        arguments.ctx_size,
        arguments.parallel,
        arguments.cache_type_k,
        arguments.cache_type_v,
        cache_bytes=arguments.cache_bytes,
        backend=arguments.backend,
        threads=arguments.threads,
    )
    try:
        with _bind(arguments.host, arguments.port) as listener:
            engine = _load(Path(arguments.model), options, console)
            listener.listen()
            port = listener.getsockname()[1]
            slots = f"{options.parallel} slot{'s' if options.parallel > 1 else ''} of {engine.scheduler.n_ctx} tokens"
            console.print(
                f"{engine.info.name}: {slots}, listening on http://{arguments.host}:{port}",
                soft_wrap=True,
                markup=False,
            )
            config = uvicorn.Config(create_app(engine), log_level="warning", lifespan="on", timeout_graceful_shutdown=3)
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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pascal-engine",
        allow_abbrev=False,
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("-m", "--model", required=True, metavar="FILE", help="the GGUF file to serve")
    add(
        "-c",
        "--ctx-size",
        type=_whole_number(0),
        default=0,
        metavar="N",
        help="tokens of context, shared evenly by all slots (default: 0, the model's context length)",
    )
    add(
        "-np",
        "--parallel",
        type=_whole_number(1),
        default=1,
        metavar="N",
        help="slots: requests served at once (default: 1)",
    )
    for short, what in (("k", "keys"), ("v", "values")):
        add(
            f"-ct{short}",
            f"--cache-type-{short}",
            choices=("f32", "f16", "q8_0", "q4_0"),
            default="f16",
            help=f"number format of cached {what} (default: f16)",
        )
    add(
        "--cache-bytes",
        type=_size,
        default=EngineOptions.cache_bytes,
        metavar="SIZE",
        help="memory for the prefix cache, as 512MiB or 8GiB; 0 keeps nothing (default: 2GiB). It holds the state at"
        " the ends of messages and answers, so that the next turn of a chat computes only what is new; what was used"
        " least recently makes room. A checkpoint of a hybrid model takes some 63 MiB (35B-A3B) or 150 MiB (27B)",
    )
    add(
        "--backend",
        choices=("cpu", "reference"),
        default="cpu",
        help="what computes: compiled kernels, or slow NumPy to compare them with (default: cpu)",
    )
    add(
        "-t",
        "--threads",
        type=_whole_number(0, 1024),
        default=0,
        metavar="N",
        help="threads that compute (default: 0, the number of physical cores)",
    )
    add("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    add(
        "--port",
        type=_whole_number(0, 65535),
        default=8080,
        metavar="N",
        help="port to listen on, 0 for any (default: 8080)",
    )
    add("--version", action="version", version=f"pascal-engine {__version__}")
    return parser


def _size(text: str) -> int:
    """Bytes that `2GiB`, `1.5 MiB` or `4096` stand for."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([KMGT]i)?B?", text, re.IGNORECASE)
    if found is None:
        raise argparse.ArgumentTypeError(f"'{text}' is not a size; give bytes, or a number with KiB, MiB, GiB or TiB")
    exponent = "kmgt".index(found[2][0].lower()) + 1 if found[2] else 0
    return int(Decimal(found[1]) * 1024**exponent)


def _whole_number(least: int, most: int = 2**31) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from {least} to {most}")
        return int(text)

    return parse


if __name__ == "__main__":
    sys.exit(main())
