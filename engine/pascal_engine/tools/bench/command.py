"""`pascal-engine bench`: the command line."""

import argparse
import sys
from pathlib import Path

from pascal_engine.backend.cpu import physical_cores
from pascal_engine.errors import ModelError
from pascal_engine.flags.values import whole_number
from pascal_engine.tools.arguments import (
    NOTHING_DONE,
    add_engine_flags,
    open_engine,
    parser,
    whole_numbers,
)
from pascal_engine.tools.bench.tables import Batched, Single, Subject, markdown, plain, to_csv, to_json
from pascal_engine.tools.bench.workload import Case, Runner, Timing
from pascal_engine.tools.progress import progress_bar

_DESCRIPTION = """\
Measures how fast a model computes, without sampling, on random tokens. There are two tables. With -p, -n and -d it is
llama-bench's: prefill of -p tokens (pp) and decode of -n tokens (tg), each behind -d tokens of context, one sequence,
mean ± standard deviation of -r repetitions. With -npp, -ntg and -npl it is llama-batched-bench's: for each number of
sequences B the prompts' time T_PP and speed S_PP, then that of all decoding together, T_TG and S_TG, and of both, T and
S. All of these take lists; every combination is measured, after a short run that is not. Let nothing else run."""

_EXAMPLES = """\
examples:
  pascal-engine bench -m model.gguf                                    pp512 and tg128
  pascal-engine bench -m model.gguf -p 512,2048 -n 64 -d 0,4096,16384  how speed falls with context
  pascal-engine bench -m model.gguf -npp 128 -ntg 64 -npl 1,2,4,8      how speed grows with sequences
  pascal-engine bench -m model.gguf -p 512 -n 0 -r 10 -t 8 -o csv
"""

_FORMATS = ("md", "table", "csv", "json")
_SINGLE = {"prompt": [512], "gen": [128], "depth": [0]}
_BATCHED = {"npp": [512], "ntg": [128], "npl": [1]}


def main(argv: list[str]) -> int:
    """Returns the exit code: 0 after all measurements, 2 if there can be none."""
    made = _parser()
    arguments = made.parse_args(argv)
    cases, batched = _cases(made, arguments)
    repetitions = arguments.repetitions or (1 if batched else 5)
    try:
        with progress_bar("loading") as report:
            n_ctx, n_rows = max(case.n_ctx for case in cases), max(case.parallel for case in cases)
            engine = open_engine(Path(arguments.model), arguments, n_ctx, n_rows, report)
        threads = arguments.threads or physical_cores()
        subject = Subject(engine, arguments.backend, threads, arguments.cache_type_k, arguments.cache_type_v)
        measured = _measure(Runner(engine, arguments.seed), cases, repetitions)
    except ModelError as error:
        print(f"pascal-engine bench: {error}", file=sys.stderr)
        return NOTHING_DONE
    results = [(Batched if batched else Single)(case, timings) for case, timings in measured]
    shape = "json" if arguments.json else arguments.output
    if shape in ("md", "table"):
        columns = [result.columns() if batched else subject.columns() | result.columns() for result in results]
        print((markdown if shape == "md" else plain)(columns))
    else:
        print((to_csv if shape == "csv" else to_json)([subject.fields() | result.fields() for result in results]))
    return 0


def _parser() -> argparse.ArgumentParser:
    made = parser("bench", _DESCRIPTION, _EXAMPLES)
    add = made.add_argument
    add("-m", "--model", required=True, metavar="FILE", help="the GGUF file")
    for flag, name, what in (
        ("-p", "prompt", "tokens of a prompt, 0 for no prefill (default: 512)"),
        ("-n", "gen", "tokens to decode, 0 for no decode (default: 128)"),
        ("-d", "depth", "tokens of context before them (default: 0)"),
    ):
        add(flag, dest=name, type=whole_numbers(0), metavar="N,...", help=what)
    for name, what in (
        ("npp", "tokens of each prompt (default: 512)"),
        ("ntg", "tokens that each sequence decodes (default: 128)"),
        ("npl", "sequences (default: 1)"),
    ):
        add(f"-{name}", type=whole_numbers(1), metavar="N,...", help=what)
    add(
        "-r",
        "--repetitions",
        type=whole_number(1),
        metavar="N",
        help="repetitions of each measurement (default: 5; 1 with -npp, -ntg, -npl)",
    )
    add("--seed", type=whole_number(0), default=0, metavar="N", help="seed of the random tokens (default: 0)")
    add("-o", "--output", choices=_FORMATS, default="md", help="form of the table (default: md, Markdown)")
    add_engine_flags(made)
    return made


def _cases(made: argparse.ArgumentParser, arguments: argparse.Namespace) -> tuple[list[Case], bool]:
    """All measurements, and whether they are of several sequences."""
    given = {name: getattr(arguments, name) for name in (*_SINGLE, *_BATCHED)}
    batched = any(given[name] is not None for name in _BATCHED)
    if batched and any(given[name] is not None for name in _SINGLE):
        made.error("-p, -n and -d make one table, -npp, -ntg and -npl another; give those of one")
    values = {name: default if given[name] is None else given[name] for name, default in (_SINGLE | _BATCHED).items()}
    if batched:
        triples = ((pp, tg, pl) for pp in values["npp"] for tg in values["ntg"] for pl in values["npl"])
        return [Case(pp, tg, parallel=pl) for pp, tg, pl in triples], True
    cases = []
    for depth in values["depth"]:
        cases += [Case(n_prompt, 0, depth) for n_prompt in values["prompt"] if n_prompt]
        cases += [Case(0, n_gen, depth) for n_gen in values["gen"] if n_gen]
    if not cases:
        made.error("nothing is left to measure; give -p or -n a number above 0")
    return cases, False


def _measure(runner: Runner, cases: list[Case], repetitions: int) -> list[tuple[Case, list[Timing]]]:
    measured: list[tuple[Case, list[Timing]]] = []
    with progress_bar("measuring") as report:
        for index, case in enumerate(cases):
            runner.warm_up(case)
            measured.append((case, []))
            for repetition in range(repetitions):
                measured[-1][1].append(runner.run(case))
                report(index * repetitions + repetition + 1, len(cases) * repetitions)
    return measured
