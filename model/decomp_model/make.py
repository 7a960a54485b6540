"""Makes the artefact: `python -m decomp_model.make crossfit | calibrate | train | export`, in this order."""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import track

from decomp_gauntlet.cases import Case, load
from decomp_gauntlet.report import Report, markdown, terminal_table
from decomp_model.augment import load_parts
from decomp_model.calibrate import Observation, choose, grid, judge, save, scored
from decomp_model.calibrate import load as load_observations
from decomp_model.network import DecomposerNetwork, NetworkConfig
from decomp_model.train import TrainOptions, fit, run
from decomp_router.decompose.tokens import WINDOW, PromptTokenizer

MODEL = Path(__file__).parent.parent
CONSOLE = Console()


def corpus(folder: Path) -> list[Case]:
    """All cases of a folder of JSONL files."""
    return [case for path in sorted(folder.glob("*.jsonl")) for case in load(path)]


def observe(network: DecomposerNetwork, cases: Sequence[Case], tokenizer: PromptTokenizer) -> list[Observation]:
    """What a network says of each case that fits its window."""
    seen = []
    for case in cases:
        encoding = tokenizer.encode(case.prompt, case.context)
        if len(encoding.ids) <= WINDOW:
            seen.append(Observation(case, encoding.spans, run(network, encoding)))
    return seen


def options_of(arguments: argparse.Namespace) -> TrainOptions:
    """Hyper-parameters with what the command line changes."""
    return TrainOptions(
        steps=arguments.steps, batch=arguments.batch, workers=arguments.workers, seed=arguments.seed
    )


def crossfit(arguments: argparse.Namespace) -> None:
    """Train on all folds but one, observe the one; together every case is seen by a network that never learnt it."""
    cases, parts = corpus(MODEL / "corpus/train"), load_parts(MODEL / "corpus/parts")
    random.Random(0).shuffle(cases)
    tokenizer = PromptTokenizer(arguments.base / "tokenizer.json")
    observations: list[Observation] = []
    for fold in range(arguments.folds):
        held_out = cases[fold :: arguments.folds]
        rest = [case for i, case in enumerate(cases) if i % arguments.folds != fold]
        network, _ = fit(rest, parts, arguments.base, replace(options_of(arguments), seed=fold))
        observations += observe(network, held_out, tokenizer)
    save(observations, arguments.out / "crossfit.pkl")


def train(arguments: argparse.Namespace) -> None:
    """Train on the whole training corpus."""
    cases, parts = corpus(MODEL / "corpus/train"), load_parts(MODEL / "corpus/parts")
    network, config = fit(cases, parts, arguments.base, options_of(arguments))
    state = {name: tensor.half() if tensor.is_floating_point() else tensor for name, tensor in network.state_dict().items()}
    torch.save(state, arguments.out / "network.pt")
    config.save(arguments.out / "network.json")


def calibrate(arguments: argparse.Namespace) -> None:
    """Thresholds on the cross-fitted observations, with what they do there."""
    observations = load_observations(arguments.out / "crossfit.pkl")
    with ProcessPoolExecutor() as pool:
        found = list(track(pool.map(partial(judge, observations), grid()), "thresholds", total=len(grid())))
    summaries = dict(zip(grid(), found, strict=True))
    chosen = choose(summaries, arguments.dangerous_rate)
    CONSOLE.print(chosen, summaries[chosen])
    (arguments.out / "thresholds.json").write_text(json.dumps(asdict(chosen), indent=1) + "\n")
    report = Report("cross-fitted", tuple(scored(observations, chosen)), {}, ())
    CONSOLE.print(terminal_table(report))
    (arguments.out / "crossfit.md").write_text(markdown(report), encoding="utf-8")


def export(arguments: argparse.Namespace) -> None:
    """Network, tokenizer and thresholds into the artefact's folder."""
    from decomp_model.export import export as export_onnx

    arguments.artefact.mkdir(parents=True, exist_ok=True)
    config = NetworkConfig(**json.loads((arguments.out / "network.json").read_text()))
    network = DecomposerNetwork(config)
    network.load_state_dict(torch.load(arguments.out / "network.pt", weights_only=True, map_location="cpu"))
    export_onnx(network, arguments.artefact / "network.onnx")
    (arguments.artefact / "network.float32.onnx").rename(arguments.out / "network.float32.onnx")
    for source in (arguments.out / "thresholds.json", arguments.base / "tokenizer.json"):
        (arguments.artefact / source.name).write_bytes(source.read_bytes())


STEPS = {"crossfit": crossfit, "calibrate": calibrate, "train": train, "export": export}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=list(STEPS))
    parser.add_argument("--base", type=Path, default=Path(".cache/base"), help="folder that decomp_model.base wrote")
    parser.add_argument("--out", type=Path, default=Path(".cache/train"), help="folder for weights and observations")
    parser.add_argument("--artefact", type=Path, default=MODEL.parent / "decomp_router/decompose/artefact")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=TrainOptions.steps)
    parser.add_argument("--batch", type=int, default=TrainOptions.batch)
    parser.add_argument("--workers", type=int, default=TrainOptions.workers, help="processes that draw examples")
    parser.add_argument("--seed", type=int, default=TrainOptions.seed)
    parser.add_argument("--dangerous-rate", type=float, default=0.003, help="most allowed on the calibration split")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    STEPS[arguments.step](arguments)


if __name__ == "__main__":
    main()
