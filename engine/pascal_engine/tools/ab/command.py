"""`pascal-engine ab`: the command line."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from pascal_engine.errors import ModelError
from pascal_engine.flags.values import whole_number
from pascal_engine.tools.ab.arms import Arm, Workload
from pascal_engine.tools.ab.experiment import (
    PHASES,
    OutputResult,
    SpeedResult,
    divergence,
    interleave,
    judge_outputs,
)
from pascal_engine.tools.ab.interval import fewest_rounds
from pascal_engine.tools.arguments import NOTHING_DONE, parser
from pascal_engine.tools.bench.tables import plain
from pascal_engine.tools.progress import progress_bar

_DESCRIPTION = """\
Tells whether B is faster than A, and whether it still computes the same. A and B are sets of flags, builds, or files.
Every round runs A, A again and B, each in a process of its own, in an order that changes from round to round, on the
same random tokens (see 'pascal-engine bench -npp -ntg -npl'). B / A is the median of the rounds' ratios, between the
bounds that a signed-rank test allows at --confidence; a difference counts when 1 lies outside. The second A is the null
arm: if A differs from itself, the machine is too restless, and the verdict says so.

Outputs agree when all rounds give the same bits; where they do not, when the mean KL divergence on --text stays within
--kld-bound, or, without a text, when every token liked best is the same. Flags that are one word take an equals sign:
--b=--flag."""

_EXAMPLES = """\
examples:
  pascal-engine ab -m model.gguf --a "-t 4" --b "-t 8"
  pascal-engine ab -m model.gguf --b "-ctk q8_0" --text book.txt -p 2048    do 8-bit keys cost speed, or sense?
  pascal-engine ab -m model.gguf --python-b /new/.venv/bin/python           this build against another
  pascal-engine ab -m model.gguf --python-b "env PYTHONPATH=/new/engine python3"
  pascal-engine ab --a "-m model-q8.gguf" --b "-m model-q4.gguf" --text book.txt --rounds 24

exit codes: 0 the outputs agree, 1 they do not or A differs from itself, 2 nothing could be compared"""


def main(argv: list[str]) -> int:
    """Returns the exit code, as the help says."""
    made = _parser()
    arguments = made.parse_args(argv)
    if arguments.rounds < fewest_rounds(arguments.confidence):
        made.error(
            f"a confidence of {arguments.confidence:g} takes {fewest_rounds(arguments.confidence)} rounds or more"
        )
    arms: list[Arm] = []
    for name in "ab":
        try:
            arms.append(
                Arm.parse(name.upper(), getattr(arguments, f"python_{name}"), arguments.model, getattr(arguments, name))
            )
        except ValueError as error:
            made.error(f"--{name}: {error}")
    try:
        speeds, outputs = _compare(arms[0], arms[1], arguments)
    except ModelError as error:
        print(f"pascal-engine ab: {error}", file=sys.stderr)
        return NOTHING_DONE
    sound = outputs.null_same_bits == outputs.n_rounds and all(speed.null.contains_one for speed in speeds)
    if arguments.json:
        print(json.dumps(_to_json(speeds, outputs, sound), indent=2))
    else:
        _show(speeds, outputs)
    return 0 if sound and outputs.agrees else 1


def _parser() -> argparse.ArgumentParser:
    made = parser("ab", _DESCRIPTION, _EXAMPLES)
    add = made.add_argument
    add("-m", "--model", metavar="FILE", help="the GGUF file, where an arm's flags name no other")
    for name in "ab":
        arm = name.upper()
        add(f"--{name}", default="", metavar="FLAGS", help=f"flags of {arm}: -m -t -ctk -ctv --backend (default: none)")
    for name in "ab":
        add(f"--python-{name}", metavar="COMMAND", help=f"Python of {name.upper()}'s build (default: this one's)")
    add("-p", type=whole_number(1), default=512, metavar="N", help="tokens of each prompt (default: 512)")
    add("-n", type=whole_number(1), default=64, metavar="N", help="tokens that each sequence decodes (default: 64)")
    add("-np", type=whole_number(1), default=1, metavar="N", help="sequences (default: 1)")
    add("--rounds", type=whole_number(1), default=12, metavar="N", help="rounds (default: 12)")
    add("--confidence", type=_confidence, default=0.99, metavar="P", help="of each interval (default: 0.99)")
    add("--text", type=Path, metavar="FILE", help="a text in UTF-8 to take the KL divergence on")
    add("--chunks", type=whole_number(1), default=4, metavar="N", help="chunks of 512 tokens of it (default: 4)")
    add("--kld-bound", type=float, default=0.01, metavar="X", help="largest mean KL divergence (default: 0.01 nats)")
    return made


def _confidence(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no number between 0 and 1")
    return value


def _compare(a: Arm, b: Arm, arguments: argparse.Namespace) -> tuple[list[SpeedResult], OutputResult]:
    workload = Workload(arguments.p, arguments.n, arguments.np)
    with progress_bar("rounds") as report:
        rounds = interleave(a, b, arguments.rounds, lambda arm, seed: arm.measure(workload, seed), report)
    apart = None
    if arguments.text is not None:
        apart = lambda: divergence(a, b, arguments.text, arguments.chunks)  # noqa: E731
    outputs = judge_outputs(rounds, apart, arguments.kld_bound)
    return [SpeedResult.of(phase, rounds, arguments.confidence) for phase in PHASES], outputs


def _show(speeds: list[SpeedResult], outputs: OutputResult) -> None:
    rows = [
        {
            "tokens/s": speed.phase,
            "A": f"{speed.a:.2f}",
            "B": f"{speed.b:.2f}",
            "B / A": str(speed.ratio),
            "A / A": str(speed.null),
            "verdict": speed.verdict,
        }
        for speed in speeds
    ]
    print(plain(rows))
    if outputs.null_same_bits < outputs.n_rounds:
        print(f"A gave its own bits in {outputs.null_same_bits} of {outputs.n_rounds} rounds only")
    print(f"outputs: {outputs.verdict}")


def _to_json(speeds: list[SpeedResult], outputs: OutputResult, sound: bool) -> dict[str, object]:
    found: dict[str, object] = {speed.phase: {**asdict(speed), "verdict": speed.verdict} for speed in speeds}
    return {
        **found,
        "outputs": {**asdict(outputs), "verdict": outputs.verdict, "agrees": outputs.agrees},
        "sound": sound,
    }
