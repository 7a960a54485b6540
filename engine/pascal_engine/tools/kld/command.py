"""`pascal-engine kld`: the command line."""

import argparse
import json
import sys
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from pascal_engine.errors import ModelError
from pascal_engine.flags.values import whole_number
from pascal_engine.tools.arguments import NOTHING_DONE, add_engine_flags, open_engine, parser
from pascal_engine.tools.kld.divergence import Divergence, compare
from pascal_engine.tools.kld.saved import SavedLogits, save
from pascal_engine.tools.kld.sources import Chunks, ModelSource, Source, tokens_of
from pascal_engine.tools.progress import progress_bar

_CHUNK = 512

_DESCRIPTION = """\
Compares what two models say comes next at every position of a text: the Kullback-Leibler divergence of B from A in nats
(0 where both say the same; a file against itself gives exactly 0), how often both like the same token best, and the
perplexity of each. The text is cut into chunks of -c tokens, and positions in the second half of each are scored, as
llama-perplexity does.

A and B are GGUF files with one vocabulary, or files of logits: --save writes A's. So two builds, two backends or two
sets of flags compare, or models of which only one fits into memory. A file of 'llama-perplexity --save-all-logits' does
too; its logits have 16 bits and end 16 below the best, and the other side's are cut there as well."""

_EXAMPLES = """\
examples:
  pascal-engine kld model-bf16.gguf model-q4.gguf --text book.txt
  pascal-engine kld model.gguf --text book.txt -c 1024 --chunks 20 --save logits     with this build,
  pascal-engine kld logits model.gguf                                                and with another
  pascal-engine kld model.gguf --text book.txt --chunks 4 -ctk q8_0 --save logits
  pascal-engine kld logits model.gguf --json                     what 8-bit keys change
"""


def main(argv: list[str]) -> int:
    """Returns the exit code: 0 after a comparison, 2 if there can be none."""
    made = _parser()
    arguments = made.parse_args(argv)
    if (arguments.b is None) == (arguments.save is None):
        made.error("give B, to compare A with it, or --save OUT, to save A's logits")
    try:
        if arguments.b is None:
            with progress_bar("computing") as report:
                save(_sources(arguments)[0], Path(arguments.save), report)
            return 0
        a, b = _sources(arguments)
        with progress_bar("comparing") as report:
            found = compare(a, b, report)
    except ModelError as error:
        print(f"pascal-engine kld: {error}", file=sys.stderr)
        return NOTHING_DONE
    if arguments.json:
        print(json.dumps({"a": arguments.a, "b": arguments.b, "n_ctx": a.chunks.n_ctx, **found.to_json()}, indent=2))
    else:
        _show(found, a.chunks, Console(highlight=False))
    return 0


def _parser() -> argparse.ArgumentParser:
    made = parser("kld", _DESCRIPTION, _EXAMPLES)
    made.add_argument("a", metavar="A", help="a GGUF file or a file of logits: what is held to be right")
    made.add_argument("b", metavar="B", nargs="?", help="a GGUF file or a file of logits: what is compared with it")
    made.add_argument("--text", metavar="FILE", help="a text in UTF-8; a file of logits brings its own along")
    made.add_argument(
        "-c", "--ctx-size", type=whole_number(8), metavar="N", help=f"tokens of a chunk (default: {_CHUNK})"
    )
    made.add_argument("--chunks", type=whole_number(1), metavar="N", help="chunks of the text (default: all)")
    made.add_argument("--save", metavar="OUT", help="save A's logits there, 4 bytes for each token at each position")
    add_engine_flags(made)
    return made


def _sources(arguments: argparse.Namespace) -> list[Source]:
    """A and, if there is one, B. The tokens are those of a file of logits, or else the text's."""
    paths = [Path(name) for name in (arguments.a, arguments.b) if name is not None]
    saved = {path: SavedLogits.open(path) for path in paths if SavedLogits.is_one(path)}
    chunks = next((logits.chunks for logits in saved.values()), None)
    if chunks is None and arguments.text is None:
        raise ModelError("there is no text to compute; give --text FILE.")
    if chunks and (arguments.text or arguments.ctx_size or arguments.chunks):
        raise ModelError("saved logits bring their text along; leave out --text, -c and --chunks.")
    return [saved[path] if path in saved else _model(path, arguments, chunks) for path in paths]


def _model(path: Path, arguments: argparse.Namespace, chunks: Chunks | None) -> ModelSource:
    """With the chunks given, or with those of the text."""
    n_ctx = chunks.n_ctx if chunks else arguments.ctx_size or _CHUNK
    with progress_bar(f"loading {path.name}") as report:
        engine = open_engine(path, arguments, n_ctx, 1, report)
    chunks = chunks or Chunks.of(tokens_of(_read(Path(arguments.text)), engine.tokenizer), n_ctx, arguments.chunks)
    if int(chunks.tokens.max()) >= engine.info.n_vocab:
        raise ModelError(f"{path}: its vocabulary lacks tokens of the other side; compare models that share one.")
    return ModelSource(engine, chunks)


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"{path}: the text cannot be read; give a text file in UTF-8.") from error


def _show(found: Divergence, chunks: Chunks, console: Console) -> None:
    figures = found.to_json()

    def measured(name: str, form: str = ".4f", times: float = 1) -> str:
        return f"{times * figures[name]:{form}} ± {times * figures[f'{name}_se']:{form}}"

    n_chunks, n_ctx = chunks.tokens.shape
    title = f"{figures['positions']:,} positions in {n_chunks} chunks of {n_ctx} tokens"
    table = Table("measure", title=title, title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("value", justify="right")
    table.add_row("perplexity of A", measured("ppl_a"))
    table.add_row("perplexity of B", measured("ppl_b"))
    table.add_row("ln(perplexity of B / of A)", measured("log_ppl_ratio", ".5f"))
    table.add_row("KL divergence of B from A, mean", measured("mean_kl", ".3g"))
    for name, label in (("median_kl", "median"), ("p99_kl", "99 %"), ("p999_kl", "99.9 %"), ("max_kl", "largest")):
        table.add_row(f"  {label}", f"{figures[name]:.3g}")
    table.add_row("same best token", f"{measured('same_top', '.2f', 100)} %")
    console.print(table)
