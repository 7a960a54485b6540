"""Makes the artefact: `python -m decomp_model.make calibrate | train | export`, in this order."""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import track

from decomp_gauntlet.cases import Case, load
from decomp_gauntlet.report import Report, markdown, terminal_table
from decomp_model.augment import load_parts
from decomp_model.calibrate import Observation, choose, grid, judge, scored
from decomp_model.network import DecomposerNetwork, NetworkConfig
from decomp_model.train import TrainOptions, fit, run
from decomp_router.decompose.tokens import WINDOW, PromptTokenizer, context_of

MODEL = Path(__file__).parent.parent
CALIBRATION_SHARE = 4
"""One case in so many is kept from training while thresholds are chosen."""
CONSOLE = Console()


def corpus(folder: Path) -> list[Case]:
    """All cases of a folder of JSONL files."""
    return [case for path in sorted(folder.glob("*.jsonl")) for case in load(path)]


def calibration_split(cases: Sequence[Case]) -> tuple[list[Case], list[Case]]:
    """(learnt, held out), the same at every call."""
    shuffled = list(cases)
    random.Random(0).shuffle(shuffled)
    held_out = shuffled[::CALIBRATION_SHARE]
    return [case for i, case in enumerate(shuffled) if i % CALIBRATION_SHARE], held_out


def fitted(cases: Sequence[Case], arguments: argparse.Namespace) -> tuple[DecomposerNetwork, NetworkConfig]:
    """A training run with what the command line changes."""
    options = TrainOptions(steps=arguments.steps, batch=arguments.batch, workers=arguments.workers, seed=arguments.seed)
    return fit(cases, load_parts(MODEL / "corpus/parts"), arguments.base, options)


def observe(network: DecomposerNetwork, cases: Sequence[Case], tokenizer: PromptTokenizer) -> list[Observation]:
    """What a network says of each case that fits its window."""
    seen = []
    for case in cases:
        encoding = tokenizer.encode(case.prompt, context_of(case.context))
        if len(encoding.ids) <= WINDOW:
            seen.append(Observation(case, encoding.spans, run(network, encoding)))
    return seen


def calibrate(arguments: argparse.Namespace) -> None:
    """Thresholds, from cases that a network of the same making never saw."""
    learnt, held_out = calibration_split(corpus(MODEL / "corpus/train"))
    network, _ = fitted(learnt, arguments)
    observations = observe(network, held_out, PromptTokenizer(arguments.base / "tokenizer.json"))
    with ProcessPoolExecutor() as pool:
        found = list(track(pool.map(partial(judge, observations), grid()), "thresholds", total=len(grid())))
    chosen = choose(dict(zip(grid(), found, strict=True)), arguments.dangerous_rate)
    CONSOLE.print(chosen)
    (arguments.out / "thresholds.json").write_text(json.dumps(asdict(chosen), indent=1) + "\n")
    report = Report("calibration split", tuple(scored(observations, chosen)), {}, ())
    CONSOLE.print(terminal_table(report))
    (arguments.out / "calibration.md").write_text(markdown(report), encoding="utf-8")


def train(arguments: argparse.Namespace) -> None:
    """The network, from the whole training corpus."""
    network, config = fitted(corpus(MODEL / "corpus/train"), arguments)
    torch.save(network.state_dict(), arguments.out / "network.pt")
    config.save(arguments.out / "network.json")


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


STEPS = {"calibrate": calibrate, "train": train, "export": export}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=list(STEPS))
    parser.add_argument("--base", type=Path, default=Path(".cache/base"), help="folder that decomp_model.base wrote")
    parser.add_argument("--out", type=Path, default=Path(".cache/train"), help="folder for weights and observations")
    parser.add_argument("--artefact", type=Path, default=MODEL.parent / "decomp_router/decompose/artefact")
    parser.add_argument("--steps", type=int, default=TrainOptions.steps, help="training steps (default %(default)s)")
    parser.add_argument("--batch", type=int, default=TrainOptions.batch)
    parser.add_argument("--workers", type=int, default=TrainOptions.workers, help="processes that draw examples")
    parser.add_argument("--seed", type=int, default=TrainOptions.seed)
    parser.add_argument("--dangerous-rate", type=float, default=0.01, help="most, with 95%% confidence, on that split")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    STEPS[arguments.step](arguments)


if __name__ == "__main__":
    main()
