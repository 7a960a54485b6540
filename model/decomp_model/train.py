"""Training: draw recombined cases, one forward pass each, four losses."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
import torch.nn.functional as F
from rich.progress import Progress
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from decomp_gauntlet.cases import Case
from decomp_model.augment import Augmenter, Parts
from decomp_model.dataset import IGNORE, Batch, Example, collate, encode, means
from decomp_model.network import DecomposerNetwork, NetworkConfig, from_base
from decomp_router.decompose.network import Scores
from decomp_router.decompose.tokens import UNKNOWN, Encoding, PromptTokenizer

POOLED_BATCHES = 8


@dataclass(frozen=True)
class TrainOptions:
    """Hyper-parameters; the defaults made the shipped artefact."""

    steps: int = 1750
    batch: int = 128
    encoder_rate: float = 1e-4
    head_rate: float = 5e-4
    warmup: float = 0.06
    weight_decay: float = 0.01
    dropout: float = 0.1
    blur: float = 0.05
    workers: int = 12
    seed: int = 1


class DrawnBatches(IterableDataset[Batch]):
    """An endless stream of batches of recombined cases; each loader worker draws its own.

    Examples of like length share a batch, which spares two thirds of the padding.
    """

    def __init__(self, cases: Sequence[Case], parts: dict[str, Parts], tokenizer: Path, options: TrainOptions) -> None:
        self._cases, self._parts, self._tokenizer, self._options = cases, parts, tokenizer, options

    def __iter__(self) -> Iterator[Batch]:
        info = get_worker_info()
        rng = random.Random(self._options.seed * 1000 + (info.id if info else 0))
        examples = self._examples(rng)
        size = self._options.batch
        while True:
            pool = sorted(itertools.islice(examples, size * POOLED_BATCHES), key=lambda e: len(e.ids))
            batches = [pool[i : i + size] for i in range(0, len(pool), size)]
            rng.shuffle(batches)
            yield from map(collate, batches)

    def _examples(self, rng: random.Random) -> Iterator[Example]:
        augmenter = Augmenter(self._cases, self._parts, rng)
        tokenizer = PromptTokenizer(self._tokenizer)
        while True:
            if (example := encode(augmenter.draw(), tokenizer, rng)) is not None:
                yield example


def losses(network: DecomposerNetwork, batch: Batch) -> dict[str, Tensor]:
    """Cross-entropies of one batch: tags, pairs (independent, forward, backward), lengths, guard."""
    tags, parents, children, lengths, guard = (out.float() for out in network(batch.ids, batch.layout))

    forward = (means(batch.firsts, parents) * means(batch.seconds, children)).sum(-1)
    backward = (means(batch.seconds, parents) * means(batch.firsts, children)).sum(-1)
    relation = torch.stack([torch.zeros_like(forward), forward, backward], dim=-1)
    return {
        "tags": F.cross_entropy(tags.flatten(0, 1), batch.tags.flatten(), ignore_index=IGNORE),
        "pairs": F.cross_entropy(relation, batch.relations) if len(relation) else relation.sum(),
        "lengths": 0.2 * F.cross_entropy(means(batch.tasks, lengths), batch.lengths),
        "guard": F.binary_cross_entropy_with_logits(guard, batch.guard),
    }


def fit(
    cases: Sequence[Case], parts: dict[str, Parts], base: Path, options: TrainOptions
) -> tuple[DecomposerNetwork, NetworkConfig]:
    """Train on a pool of cases; runs on the GPU where there is one."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(options.seed)
    network, config = from_base(base / "base.npz", options.dropout)
    network.to(device).train()
    optimizer, schedule = _optimizer(network, options)
    loader = DataLoader(
        DrawnBatches(cases, parts, base / "tokenizer.json", options),
        batch_size=None,
        num_workers=options.workers,
        prefetch_factor=4 if options.workers else None,
    )
    with Progress() as progress:
        bar = progress.add_task("training", total=options.steps)
        for step, batch in zip(range(options.steps), loader, strict=False):
            with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
                parts_of_loss = losses(network, _blurred(batch.to(device), options.blur))
            loss = torch.stack(list(parts_of_loss.values())).sum()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            if step % 50 == 0:
                shown = " ".join(f"{name} {float(value):.3f}" for name, value in parts_of_loss.items())
                progress.update(bar, completed=step, description=shown)
            if step % 500 == 0:
                progress.console.print(f"step {step}: {shown}")
    return network.eval(), config


def _blurred(batch: Batch, share: float) -> Batch:
    """Some tokens unreadable, so that no single word decides."""
    hidden = (torch.rand(batch.ids.shape, device=batch.ids.device) < share) & (batch.ids > UNKNOWN)
    return replace(batch, ids=batch.ids.masked_fill(hidden, UNKNOWN))


def _optimizer(
    network: DecomposerNetwork, options: TrainOptions
) -> tuple[torch.optim.AdamW, torch.optim.lr_scheduler.LambdaLR]:
    encoder = list(network.encoder.parameters())
    known = {id(parameter) for parameter in encoder}
    heads = [parameter for parameter in network.parameters() if id(parameter) not in known]
    optimizer = torch.optim.AdamW(
        [{"params": encoder, "lr": options.encoder_rate}, {"params": heads, "lr": options.head_rate}],
        weight_decay=options.weight_decay,
    )
    warm = options.warmup * options.steps

    def rate(step: int) -> float:
        return min(step / warm, max(0.0, (options.steps - step) / (options.steps - warm)))

    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, rate)


@torch.no_grad()
def run(network: DecomposerNetwork, encoding: Encoding) -> Scores:
    """One prompt through the trained network at float32: what the exported artefact approximates."""
    device = next(network.parameters()).device
    ids, layout = (torch.from_numpy(a)[None].to(device) for a in (encoding.ids, encoding.layout))
    tags, parents, children, lengths, guard = (out[0].float().cpu().numpy() for out in network(ids, layout))
    return Scores(tags, parents, children, lengths, float(guard))
