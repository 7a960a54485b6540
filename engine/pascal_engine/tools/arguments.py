"""What the command lines of all tools have in common."""

import argparse
from collections.abc import Callable
from pathlib import Path

from pascal_engine.engine import Engine, EngineOptions
from pascal_engine.errors import ModelError
from pascal_engine.flags.values import whole_number
from pascal_engine.tools.progress import Report

NOTHING_DONE = 2
"""Exit code of a command that cannot do its work."""


def parser(name: str, description: str, examples: str) -> argparse.ArgumentParser:
    """The parser of `pascal-engine NAME`, whose help ends with the examples."""
    made = argparse.ArgumentParser(
        prog=f"pascal-engine {name}",
        allow_abbrev=False,
        description=description,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--json", action="store_true", help="print JSON")
    return made


def add_engine_flags(made: argparse.ArgumentParser) -> None:
    """The flags of the service that decide what is computed and how fast."""
    for short, what in (("k", "keys"), ("v", "values")):
        made.add_argument(
            f"-ct{short}",
            f"--cache-type-{short}",
            choices=("f32", "f16", "q8_0", "q4_0"),
            default="f16",
            help=f"number format of cached {what} (default: f16)",
        )
    made.add_argument("--backend", choices=("cpu", "reference"), default="cpu", help="what computes (default: cpu)")
    made.add_argument(
        "-t",
        "--threads",
        type=whole_number(0, 1024),
        default=0,
        metavar="N",
        help="threads that compute (default: 0, the number of physical cores)",
    )


def open_engine(path: Path, arguments: argparse.Namespace, n_ctx: int, n_rows: int, report: Report) -> Engine:
    """The engine that the flags of `add_engine_flags` describe, with `n_rows` rows of at least `n_ctx` tokens and no
    prefix cache. A model whose context is shorter is a `ModelError`."""
    options = EngineOptions(
        n_ctx * n_rows,
        n_rows,
        arguments.cache_type_k,
        arguments.cache_type_v,
        cache_bytes=0,
        backend=arguments.backend,
        threads=arguments.threads,
    )
    engine = Engine.open(path, options, report)
    if engine.pools.n_ctx < n_ctx:
        raise ModelError(
            f"{path}: this takes {n_ctx} tokens of context, and the model has {engine.pools.n_ctx}; ask for fewer."
        )
    return engine


def whole_numbers(least: int) -> Callable[[str], list[int]]:
    """A parser of lists such as `128,512`."""
    one = whole_number(least)
    return lambda text: [one(part) for part in text.split(",")]
