"""Makes the artefact: `python -m decomp_model.make train | mix | export | calibrate`, in this order."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import track

from decomp_gauntlet.cases import Case
from decomp_gauntlet.report import Report, terminal_table
from decomp_model.augment import load_parts
from decomp_model.calibrate import (
    CONFIDENCE,
    FREE,
    RATE,
    best_recall,
    curve,
    fit_scale,
    in_other_clothes,
    learn_then_test,
    outcomes,
)
from decomp_model.network import DecomposerNetwork, NetworkConfig
from decomp_model.rounding import rehearse
from decomp_model.splits import MODEL, corpus, held_out_split
from decomp_model.train import TrainOptions, fit, reader
from decomp_router.decompose import decomposer
from decomp_router.decompose.reading import Reading
from decomp_router.decompose.tokens import PromptTokenizer, context_of

CONSOLE = Console()
SHARE = 0.55
RESULT = MODEL.parent / "docs/results/calibration.json"


def train(arguments: argparse.Namespace) -> None:
    """The network, from the pretrained encoder or from --start; then what its certainty is worth."""
    learnt, _ = held_out_split(corpus(MODEL / "corpus/train"))
    parts = load_parts(MODEL / "corpus/parts")
    network, config = fit(learnt, parts, arguments.base, _options(arguments), arguments.start)
    config.save(arguments.out / "network.json")
    _keep(network, arguments)


def mix(arguments: argparse.Namespace) -> None:
    """The mean of the weights just trained and those of --start, from which training went on (Wortsman et al. 2022):
    better than either on prompts that neither learnt."""
    config = NetworkConfig(**json.loads((arguments.out / "network.json").read_text()))
    network = DecomposerNetwork(config)
    state, former = (torch.load(path, weights_only=True) for path in (arguments.out / "network.pt", arguments.start))
    for name, trained in state.items():
        if trained.is_floating_point() and not name.endswith(".wide"):
            state[name] = (1 - arguments.share) * trained + arguments.share * former[name]
    network.load_state_dict(state)
    rehearse(network, {})  # judged as the export will compute; the wide channels are in the weights' file
    _keep(network.eval(), arguments)


def _keep(network: DecomposerNetwork, arguments: argparse.Namespace) -> None:
    torch.save(network.state_dict(), arguments.out / "network.pt")
    (arguments.out / "scale.json").write_text(json.dumps(_judge(network, arguments)) + "\n")


def _judge(network: DecomposerNetwork, arguments: argparse.Namespace) -> dict[str, float]:
    """Recall, and the scale of certainties, on prompts that the network never saw: the part held out, and the
    development set."""
    _, held_out = held_out_split(corpus(MODEL / "corpus/train"))
    of = reader(network, PromptTokenizer(arguments.base / "tokenizer.json"))
    seen, developed = outcomes(held_out, of), outcomes(corpus(MODEL / "corpus/dev"), of)
    for name, found in (("held out", seen), ("development", developed)):
        certainty, recall = best_recall(found)
        CONSOLE.print(f"{name}: recall {recall:.3f} at {RATE:.1%} observed, certainty {certainty:.1f}")
    slope, offset = fit_scale([*seen, *developed])
    return {"slope": slope, "offset": offset}


def export(arguments: argparse.Namespace) -> None:
    """Network and tokenizer into the artefact's folder; thresholds that never fan out, until calibrated."""
    from decomp_model.export import export as export_onnx

    arguments.artefact.mkdir(parents=True, exist_ok=True)
    config = NetworkConfig(**json.loads((arguments.out / "network.json").read_text()))
    network = DecomposerNetwork(config)
    network.load_state_dict(torch.load(arguments.out / "network.pt", weights_only=True, map_location="cpu"))
    export_onnx(network, arguments.artefact / "network.onnx")
    (arguments.artefact / "network.float32.onnx").rename(arguments.out / "network.float32.onnx")
    (arguments.artefact / "tokenizer.json").write_bytes((arguments.base / "tokenizer.json").read_bytes())
    _write_thresholds(arguments, 99.0)


def calibrate(arguments: argparse.Namespace) -> None:
    """The certainty a fan-out needs, by learn-then-test on the calibration split, with the artefact itself."""
    free = decomposer.load(arguments.artefact, FREE)

    def read(case: Case) -> Reading:
        return free.read_freely(case.prompt, context_of(case.context))

    cases = corpus(MODEL / "corpus/calibration")
    seen = outcomes(track(cases, "prompts"), read)
    certainty = learn_then_test(in_other_clothes(track(cases, "their variants"), read), arguments.rate)
    CONSOLE.print(f"certainty {certainty}: at most {arguments.rate:.1%} dangerous with {CONFIDENCE:.0%} confidence")
    if certainty is None:
        raise SystemExit("no certainty keeps the rate: the calibration split is too small, or the network too weak")
    _write_thresholds(arguments, certainty)
    report = Report("calibration split", tuple(outcome.at(certainty) for outcome in seen), {}, ())
    CONSOLE.print(terminal_table(report))
    total = report.total
    written = {"cases": total.cases, "at_risk": total.at_risk, "dangerous": total.dangerous, "recall": total.recall}
    written |= {"accuracy": total.accuracy, "certainty": certainty, "rate": arguments.rate, "confidence": CONFIDENCE}
    written["curve"] = curve(seen).round(5).tolist()
    RESULT.write_text(json.dumps(written) + "\n")


def _options(arguments: argparse.Namespace) -> TrainOptions:
    return TrainOptions(
        steps=arguments.steps,
        batch=arguments.batch,
        layers=arguments.layers,
        encoder_rate=arguments.rate_of_learning,
        workers=arguments.workers,
        seed=arguments.seed,
    )


def _write_thresholds(arguments: argparse.Namespace, certainty: float) -> None:
    scale = json.loads((arguments.out / "scale.json").read_text())
    thresholds = replace(FREE, certainty=certainty, **scale)
    (arguments.artefact / "thresholds.json").write_text(json.dumps(asdict(thresholds), indent=1) + "\n")


STEPS = {"train": train, "mix": mix, "export": export, "calibrate": calibrate}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=list(STEPS))
    parser.add_argument("--base", type=Path, default=Path(".cache/base"), help="folder that decomp_model.base wrote")
    parser.add_argument("--out", type=Path, default=Path(".cache/train"), help="folder for weights and observations")
    parser.add_argument("--artefact", type=Path, default=MODEL.parent / "decomp_router/decompose/artefact")
    parser.add_argument("--start", type=Path, help="weights to go on from (train), or to mix with (mix)")
    parser.add_argument("--share", type=float, default=SHARE, help="of --start in the mix (default %(default)s)")
    parser.add_argument("--steps", type=int, default=TrainOptions.steps, help="training steps (default %(default)s)")
    parser.add_argument("--batch", type=int, default=TrainOptions.batch)
    parser.add_argument("--layers", type=int, default=TrainOptions.layers, help="12, 6, 4 or 3 of the encoder's layers")
    parser.add_argument("--rate-of-learning", type=float, default=TrainOptions.encoder_rate, help="of the encoder")
    parser.add_argument("--workers", type=int, default=TrainOptions.workers, help="processes that draw examples")
    parser.add_argument("--seed", type=int, default=TrainOptions.seed)
    parser.add_argument("--rate", type=float, default=RATE, help="most dangerous cases among those that can go wrong")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    STEPS[arguments.step](arguments)


if __name__ == "__main__":
    main()
