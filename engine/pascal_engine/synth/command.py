"""`pascal-engine synth`: writes a model of random weights."""

import argparse
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

from pascal_engine.errors import ModelError
from pascal_engine.inspection.report import count_types
from pascal_engine.inspection.tables import show_count, show_size, types_table
from pascal_engine.synth.shapes import SHAPES
from pascal_engine.synth.tensors import TYPE_NAMES, tensors
from pascal_engine.synth.writer import write_model

_DESCRIPTION = """\
Writes a GGUF file with the shape of a real model and random weights: it says nothing of sense, as fast as the real one.
Matrices are spread as 1 / sqrt(inputs), so that numbers stay finite; Q4_K_M mixes types as llama.cpp does."""

_EXAMPLES = """\
examples:
  pascal-engine synth --like qwen35moe-1b small.gguf
  pascal-engine synth --like qwen35-27b --type Q8_0 large.gguf
  pascal-engine synth --like qwen35moe-35b-a3b --dry-run      how large it would be
  pascal-engine -m small.gguf -np 4
"""


def main(argv: list[str]) -> int:
    """Returns the exit code: 0 when the file is there, 2 if it cannot be written."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.dry_run:
        _show_plan(arguments.like, arguments.type)
        return 0
    if arguments.out is None:
        parser.error("give OUT, the file to write, or --dry-run")
    shape, path = SHAPES[arguments.like], Path(arguments.out)
    console = Console(stderr=True, highlight=False)
    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    try:
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
            task = bar.add_task("writing", total=None)
            write_model(
                path,
                arguments.like,
                shape,
                arguments.type,
                arguments.seed,
                lambda done, total: bar.update(task, completed=done, total=total),
            )
    except ModelError as error:
        print(f"pascal-engine synth: {error}", file=sys.stderr)
        return 2
    n_parameters = sum(tensor.n_elements for tensor in tensors(shape, arguments.type))
    print(f"{path}: {n_parameters / 1e6:,.0f} M parameters, {path.stat().st_size / 1e6:,.0f} MB")
    return 0


def _show_plan(name: str, type_name: str) -> None:
    planned = tensors(SHAPES[name], type_name)
    n_parameters, n_bytes = sum(tensor.n_elements for tensor in planned), sum(tensor.n_bytes for tensor in planned)
    console = Console(highlight=False)
    console.print(f"{name} as {type_name}: {show_count(n_parameters)} parameters, {show_size(n_bytes)}", markup=False)
    console.print(types_table(count_types((tensor.type, tensor.n_elements, tensor.n_bytes) for tensor in planned)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pascal-engine synth",
        allow_abbrev=False,
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--like", required=True, choices=SHAPES, help="the model whose shape it takes")
    parser.add_argument(
        "--type",
        default="Q4_K_M",
        choices=TYPE_NAMES,
        metavar="TYPE",
        help=f"number format of the matrices (default: Q4_K_M): {', '.join(TYPE_NAMES)}",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the weights (default: 0)")
    parser.add_argument("--dry-run", action="store_true", help="show the sizes of what would be written, write nothing")
    parser.add_argument("out", nargs="?", metavar="OUT", help="the file to write")
    return parser
