"""What each choice buys: `python -m decomp_model.ablate VARIANT...` trains each on the learnt part of the corpus and
writes its figures on the held-out part and the development set."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from decomp_gauntlet.cases import Case
from decomp_gauntlet.report import summarise
from decomp_model.augment import load_parts
from decomp_model.calibrate import Outcome, best_recall, outcomes
from decomp_model.dataset import INDEPENDENT, collate, encode
from decomp_model.network import DecomposerNetwork
from decomp_model.pairwise import PairwiseNetwork, fit_pairwise, pairs_of
from decomp_model.pairwise import collate as collate_pairs
from decomp_model.splits import MODEL, corpus, held_out_split
from decomp_model.train import TrainOptions, fit, logits_of, reader
from decomp_router.decompose.tokens import PromptTokenizer

VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {"consistency": 0.0, "blur": 0.1},
    "6 layers, plain": {"consistency": 0.0, "blur": 0.1, "layers": 6},
    "dependence x2": {"consistency": 0.0, "blur": 0.1, "dependence": 2.0},
    "consistency 0.5": {"consistency": 0.5, "blur": 0.1},
    "consistency 2": {"consistency": 2.0, "blur": 0.1},
    "shipped recipe": {},
    "dropout 0.2": {"dropout": 0.2},
    "half the steps": {"steps": 0.5},
    "6 layers": {"layers": 6},
}


def figures(seen: Sequence[Outcome]) -> dict[str, float | None]:
    """At the certainty that keeps the observed dangerous rate within the bound."""
    certainty, recall = best_recall(seen)
    total = summarise([o.at(certainty) for o in seen])
    return {
        "recall": round(recall, 4),
        "accuracy": round(total.accuracy, 4),
        "dropped": total.dropped,
        "span_f1": total.span_f1,
        "edge_f1": total.edge_f1,
        "certainty": certainty,
    }


def area(independent: npt.NDArray[np.bool_], log_odds: npt.NDArray[np.float64]) -> float:
    """AUC: the chance that an independent pair has higher log-odds of independence than a dependent one."""
    order = np.argsort(np.argsort(log_odds)) + 1.0
    ones = int(independent.sum())
    return float((order[independent].sum() - ones * (ones + 1) / 2) / (ones * (len(independent) - ones)))


@torch.no_grad()
def pair_figures(
    network: DecomposerNetwork | PairwiseNetwork, cases: Sequence[Case], tokenizer: PromptTokenizer
) -> dict[str, float]:
    """Accuracy and AUC of the relation of all pairs of labelled sub-tasks."""
    device = next(network.parameters()).device
    said, true = [], []
    for case in cases:
        example = encode(case, tokenizer)
        if example is None or not example.pairs:
            continue
        if isinstance(network, PairwiseNetwork):
            ids, layout, relations = collate_pairs(list(pairs_of(example)))
            said.append(network(ids.to(device), layout.to(device)).float().cpu())
        else:
            batch = collate([example])
            said.append(logits_of(network, batch.to(str(device))).relation.cpu())
            relations = batch.relations
        true.append(relations)
    logits, labels = torch.cat(said), torch.cat(true)
    odds = (logits[:, INDEPENDENT] - torch.logsumexp(logits[:, 1:], dim=-1)).double().numpy()
    return {
        "pair_accuracy": round(float((logits.argmax(-1) == labels).double().mean()), 4),
        "pair_auc": round(area((labels == INDEPENDENT).numpy(), odds), 4),
    }


def judge(
    network: DecomposerNetwork, held: Sequence[Case], dev: Sequence[Case], tokenizer: PromptTokenizer
) -> dict[str, Any]:
    """All figures of one network."""
    of = reader(network, tokenizer)
    seen, developed = outcomes(held, of), outcomes(dev, of)
    return {
        "held_out": figures(seen) | pair_figures(network, held, tokenizer),
        "development": figures(developed) | pair_figures(network, dev, tokenizer),
    }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("variant", nargs="+", choices=[*VARIANTS, "pairwise"])
    parser.add_argument("--steps", type=int, default=TrainOptions.steps)
    parser.add_argument("--fold", type=int, default=0, help="which tenth of the corpus is held out")
    parser.add_argument("--workers", type=int, default=TrainOptions.workers)
    parser.add_argument("--base", type=Path, default=Path(".cache/base"), help="folder that decomp_model.base wrote")
    parser.add_argument("--out", type=Path, default=Path("docs/results"), help="folder for ablation-VARIANT.json")
    arguments = parser.parse_args()
    learnt, held = held_out_split(corpus(MODEL / "corpus/train"), arguments.fold)
    dev, parts = corpus(MODEL / "corpus/dev"), load_parts(MODEL / "corpus/parts")
    tokenizer = PromptTokenizer(arguments.base / "tokenizer.json")
    plain = TrainOptions(steps=arguments.steps, workers=arguments.workers)
    for name in arguments.variant:
        begun = time.perf_counter()
        found: dict[str, Any] = {"variant": name, "steps": plain.steps, "learnt": len(learnt), "held": len(held)}
        if name == "pairwise":
            baseline = fit_pairwise(learnt, parts, arguments.base, plain)
            found["train_seconds"] = round(time.perf_counter() - begun)
            found["held_out"] = pair_figures(baseline, held, tokenizer)
            found["development"] = pair_figures(baseline, dev, tokenizer)
        else:
            changes = dict(VARIANTS[name])
            changes["steps"] = int(plain.steps * changes.get("steps", 1))
            network, _ = fit(learnt, parts, arguments.base, replace(plain, **changes))
            found["train_seconds"] = round(time.perf_counter() - begun)
            found |= judge(network, held, dev, tokenizer)
        target = arguments.out / f"ablation-{name.replace(' ', '-')}.json"
        target.write_text(json.dumps(found, indent=1) + "\n")
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
