"""Do the shipped int8 network and its float32 original make the same plans? `python bench/agreement.py FLOAT32.onnx`

Reads the shipped case sets with both and writes docs/results/agreement.json. With --plans FILE the int8 plans are
written instead, and with --against FILE they are compared with such a file: so another processor, or one that is
emulated (`qemu-x86_64 -cpu Haswell python bench/agreement.py --plans haswell.json`), can be held against this one.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from machine import machine
from rich.progress import track

from decomp_gauntlet.cases import Case, load
from decomp_gauntlet.score import score
from decomp_gauntlet.sets import shipped
from decomp_gauntlet.solvers import plan_of
from decomp_router.decompose import decomposer
from decomp_router.decompose.response import response

ARTEFACT = Path(str(files("decomp_router.decompose") / "artefact"))
Plans = dict[str, dict[str, Any]]


def plans(reader: decomposer.Decomposer, cases: Sequence[Case], title: str) -> Plans:
    """What POST /decompose would answer, by case id, without the time it took."""
    found = {}
    for case in track(cases, title):
        body = response(reader.read(case.prompt, case.context), 0.0)
        found[case.id] = {name: body[name] for name in ("subtasks", "clauses")}
    return found


def shape(plan: dict[str, Any]) -> list[Any]:
    """What runs, and in which order: spans and dependencies, without lengths and clauses."""
    return [(task["start"], task["end"], task["deps"]) for task in plan["subtasks"]]


def compared(cases: Sequence[Case], here: Plans, there: Plans) -> dict[str, Any]:
    """How many plans are the same, and which fan out dangerously only on one side."""

    def dangerous(case: Case, plan: dict[str, Any]) -> bool:
        return bool(score(case, plan_of(case.prompt, plan)).dangerous)

    both = [case for case in cases if case.id in here and case.id in there]
    differing = [case.id for case in both if shape(here[case.id]) != shape(there[case.id])]
    fanout = [
        case.id
        for case in both
        if plan_of(case.prompt, here[case.id]).fans_out != plan_of(case.prompt, there[case.id]).fans_out
    ]
    turned = [case.id for case in both if dangerous(case, here[case.id]) and not dangerous(case, there[case.id])]
    return {
        "cases": len(both),
        "same_plan": round(1 - len(differing) / len(both), 4),
        "same_fanout": round(1 - len(fanout) / len(both), 4),
        "differing": differing,
        "turned_dangerous": turned,
    }


def float32_reader(network: Path) -> decomposer.Decomposer:
    """The shipped artefact with another network."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("tokenizer.json", "thresholds.json"):
            shutil.copy(ARTEFACT / name, folder)
        shutil.copy(network, Path(folder) / "network.onnx")
        return decomposer.load(Path(folder))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("float32", nargs="?", type=Path, help="the network before quantisation")
    parser.add_argument("--plans", type=Path, help="write the int8 plans of this processor here, and stop")
    parser.add_argument("--against", type=Path, help="compare with plans that another processor wrote")
    parser.add_argument("--every", type=int, default=1, help="only one case in so many")
    parser.add_argument("--out", type=Path, default=Path("docs/results/agreement.json"))
    arguments = parser.parse_args()
    cases = [case for path in shipped() for case in load(path)][:: arguments.every]
    here = plans(decomposer.load(), cases, "int8")
    if arguments.plans:
        arguments.plans.write_text(json.dumps(here) + "\n")
        return
    result: dict[str, Any] = {"machine": machine()}
    if arguments.float32:
        result["int8_against_float32"] = compared(
            cases, here, plans(float32_reader(arguments.float32), cases, "float32")
        )
    if arguments.against:
        result["other_processor_against_this"] = compared(cases, json.loads(arguments.against.read_text()), here)
    arguments.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
