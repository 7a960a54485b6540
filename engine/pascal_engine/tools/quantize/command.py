"""`pascal-engine quantize`: the command line."""

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from pascal_engine.backend.cpu import physical_cores
from pascal_engine.errors import ModelError
from pascal_engine.flags.values import whole_number
from pascal_engine.gguf.parts import Parts
from pascal_engine.gguf.quants import LAYOUTS
from pascal_engine.inspection.report import count_types
from pascal_engine.inspection.tables import show_size, types_table
from pascal_engine.tools.arguments import NOTHING_DONE, parser
from pascal_engine.tools.progress import progress_bar
from pascal_engine.tools.quantize.mix import SHIPPED, Change, Mix, Rule
from pascal_engine.tools.quantize.writer import file_type, write_quantised

_DESCRIPTION = f"""\
Writes the model IN to OUT with its tensors in other number formats. A mix says which: lines of 'pattern = TYPE, TYPE',
where the first pattern that matches a tensor's name holds, and of its types the first whose blocks fit its rows (32 or
256 weights). What nothing matches, or nothing fits, stays as it is; 'keep' says so outright; '#' begins a remark. In a
model without output.weight the embedding is the head too, and takes the rules for output.weight.

Mixes that come along: {", ".join(SHIPPED)}. trimmed is for old cards: Q4_K (Q4_0 where rows do not fit), Q6_K for the
head, Q8_0 or F32 for what is small and sensitive, no Q3_K. Begin with a file in F32, BF16 or F16: what an earlier
quantisation lost does not come back. Of a split model any part will do; the result is one file."""

_EXAMPLES = """\
examples:
  pascal-engine quantize model-bf16.gguf model-trimmed.gguf
  pascal-engine quantize model-bf16.gguf out.gguf --dry-run            what it would do, and the size
  pascal-engine quantize model-bf16.gguf out.gguf --mix my.mix         where my.mix holds, for example:
                                                                         output.weight = Q8_0
                                                                         blk.[0-3].ffn_down* = Q6_K
                                                                         *.ffn_*.weight = Q4_K, Q4_0
                                                                         *.attn_*.weight = Q5_K, Q5_0
  pascal-engine kld model-bf16.gguf out.gguf --text FILE               what it cost
"""


def main(argv: list[str]) -> int:
    """Returns the exit code: 0 when OUT is there, 2 if it cannot be made."""
    arguments = _parser().parse_args(argv)
    begun = time.perf_counter()
    try:
        source, out = Parts.open(Path(arguments.source)), Path(arguments.out)
        changes = Mix.open(arguments.mix).plan(source.tensors)
        if not arguments.dry_run:
            n_threads = arguments.threads or physical_cores()
            with progress_bar("quantising") as report:
                write_quantised(source, out, changes, n_threads, report)
    except ModelError as error:
        print(f"pascal-engine quantize: {error}", file=sys.stderr)
        return NOTHING_DONE
    if arguments.json:
        print(json.dumps(_to_json(changes), indent=2))
    else:
        _show(changes, Console(highlight=False))
        _advise(changes)
        if not arguments.dry_run:
            print(f"{out}: written in {time.perf_counter() - begun:.1f} s")
    return 0


def _parser() -> argparse.ArgumentParser:
    made = parser("quantize", _DESCRIPTION, _EXAMPLES)
    made.add_argument("--mix", default="trimmed", metavar="MIX", help="a mix file, or a name (default: trimmed)")
    made.add_argument("--dry-run", action="store_true", help="say what would be done, write nothing")
    made.add_argument(
        "-t",
        "--threads",
        type=whole_number(0, 1024),
        default=0,
        metavar="N",
        help="threads that quantise (default: 0, the number of physical cores)",
    )
    made.add_argument("source", metavar="IN", help="the GGUF file to read")
    made.add_argument("out", metavar="OUT", help="the file to write; it must not exist")
    return made


def _sizes(changes: list[Change]) -> tuple[int, int]:
    """Bytes of all tensors before and after."""
    return sum(len(change.tensor.data) for change in changes), sum(change.n_bytes for change in changes)


def _show(changes: list[Change], console: Console) -> None:
    rules: Counter[tuple[Rule | None, str]] = Counter()
    for change in changes:
        rules[change.rule, f"{change.tensor.type.name} to {change.type.name}"] += 1
    table = Table("rule", "becomes", "tensors", title="Rules that matched", title_justify="left", box=box.SIMPLE_HEAD)
    for (rule, becomes), count in rules.items():
        table.add_row(str(rule or "(none)"), becomes, str(count))
    console.print(table)
    types = count_types((change.type, change.tensor.n_elements, change.n_bytes) for change in changes)
    console.print(types_table(types))
    before, after = _sizes(changes)
    console.print(f"{show_size(before)} become {show_size(after)}", markup=False)


def _advise(changes: list[Change]) -> None:
    """A word on weights that are quantised for the second time."""
    again = Counter(
        change.tensor.type.name
        for change in changes
        if change.type != change.tensor.type and LAYOUTS[change.tensor.type].n_weights > 1
    )
    if again:
        print(
            f"pascal-engine quantize: {again.total()} tensors of IN were quantised before ({', '.join(again)}), and"
            " what that lost stays lost; begin with a file in F32, BF16 or F16 if there is one.",
            file=sys.stderr,
        )


def _to_json(changes: list[Change]) -> dict[str, object]:
    before, after = _sizes(changes)
    tensors = [
        {"name": change.tensor.name, "from": change.tensor.type.name, "to": change.type.name, "bytes": change.n_bytes}
        for change in changes
    ]
    return {"bytes_before": before, "bytes_after": after, "file_type": file_type(changes).name, "tensors": tensors}
