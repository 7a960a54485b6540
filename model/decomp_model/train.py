"""Training: draw recombined cases, one forward pass each, four losses."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
import torch.nn.functional as F
from rich.progress import Progress
from torch import Tensor
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from decomp_gauntlet.cases import Case
from decomp_model.augment import Augmenter, Parts
from decomp_model.calibrate import FREE
from decomp_model.dataset import IGNORE, Batch, Example, collate, encode, means
from decomp_model.network import DecomposerNetwork, NetworkConfig, from_base
from decomp_model.rounding import rehearse, widest_channels
from decomp_router.decompose.network import Scores
from decomp_router.decompose.reading import Reading, read_freely
from decomp_router.decompose.tokens import UNKNOWN, WINDOW, Encoding, PromptTokenizer, context_of
from decomp_router.plan import Plan

POOLED_BATCHES = 8
TYPICAL = 150
"""Prompts on which the widest channels are looked for."""
AVERAGED = 0.999
"""Decay of the running mean of the weights, which is what training returns."""


@dataclass(frozen=True)
class TrainOptions:
    """Hyper-parameters; the defaults are those of the second of the two runs that the shipped network is the mean of
    (the model card has the first's). Their schedules followed a clock instead of steps."""

    steps: int = 14_657
    batch: int = 256
    layers: int = 12
    encoder_rate: float = 1.4e-4
    head_rate: float = 5e-4
    warmup: float = 0.03
    weight_decay: float = 0.01
    dropout: float = 0.15
    blur: float = 0.3
    """Greatest share of a prompt's tokens that training hides."""
    dependence: float = 1.0
    """Weight of a dependent pair and of a prompt that must not fan out, against 1 for the others."""
    consistency: float = 1.0
    """Weight of agreement between a prompt and the same prompt typed in haste; takes half of each batch."""
    rehearsal: float = 0.3
    """Share of the steps, the last ones, in which products are rounded as their 8-bit export will round them."""
    workers: int = 12
    seed: int = 1


class DrawnBatches(IterableDataset[Batch]):
    """An endless stream of batches of recombined cases; each loader worker draws its own.

    Examples of like length share a batch, which spares two thirds of the padding. With twins, the second half of a
    batch is the first half retyped.
    """

    def __init__(self, cases: Sequence[Case], parts: dict[str, Parts], tokenizer: Path, options: TrainOptions) -> None:
        self._cases, self._parts, self._tokenizer, self._options = cases, parts, tokenizer, options

    def __iter__(self) -> Iterator[Batch]:
        info = get_worker_info()
        rng = random.Random(self._options.seed * 1000 + (info.id if info else 0))
        groups = self._twins(rng) if self._options.consistency else self._single(rng)
        size = self._options.batch // (2 if self._options.consistency else 1)
        while True:
            pool = sorted(itertools.islice(groups, size * POOLED_BATCHES), key=lambda group: len(group[0].ids))
            batches = [pool[i : i + size] for i in range(0, len(pool), size)]
            rng.shuffle(batches)
            for batch in batches:
                yield collate([example for column in zip(*batch, strict=True) for example in column])

    def _single(self, rng: random.Random) -> Iterator[tuple[Example, ...]]:
        augmenter = Augmenter(self._cases, self._parts, rng)
        tokenizer = PromptTokenizer(self._tokenizer)
        while True:
            if (example := encode(augmenter.draw(), tokenizer, rng)) is not None:
                yield (example,)

    def _twins(self, rng: random.Random) -> Iterator[tuple[Example, ...]]:
        augmenter = Augmenter(self._cases, self._parts, rng)
        tokenizer = PromptTokenizer(self._tokenizer)
        while True:
            case = augmenter.draw()
            first, second = (encode(c, tokenizer, rng) for c in (case, augmenter.retyped(case)))
            if first is not None and second is not None:
                yield (first, second)


@dataclass(frozen=True)
class Logits:
    """What a network says of a batch: tags [tokens, tags], relation [pairs, 3], lengths [sub-tasks, 4], guard [B]."""

    tags: Tensor
    relation: Tensor
    lengths: Tensor
    guard: Tensor


def logits_of(network: DecomposerNetwork, batch: Batch) -> Logits:
    """One forward pass; relation is independent (0 by definition), forward, backward."""
    tags, parents, children, lengths, guard = (out.float() for out in network(batch.ids, batch.layout))
    forward = (means(batch.firsts, parents) * means(batch.seconds, children)).sum(-1)
    backward = (means(batch.seconds, parents) * means(batch.firsts, children)).sum(-1)
    relation = torch.stack([torch.zeros_like(forward), forward, backward], dim=-1)
    return Logits(tags.flatten(0, 1), relation, means(batch.tasks, lengths), guard)


def losses(said: Logits, batch: Batch, options: TrainOptions) -> dict[str, Tensor]:
    """Cross-entropies of one batch: tags, pairs (independent, forward, backward), lengths, guard."""
    weight = options.dependence
    by_relation = torch.tensor([1.0, weight, weight], device=said.relation.device)
    by_guard = torch.where(batch.guard > 0, 1.0, weight)
    found = {
        "tags": F.cross_entropy(said.tags, batch.tags.flatten(), ignore_index=IGNORE),
        "pairs": F.cross_entropy(said.relation, batch.relations, by_relation),
        "lengths": 0.3 * F.cross_entropy(said.lengths, batch.lengths),
        "guard": F.binary_cross_entropy_with_logits(said.guard, batch.guard, by_guard),
    }
    if options.consistency:
        found["twins"] = options.consistency * _disagreement(said, batch)
    return found


def _disagreement(said: Logits, batch: Batch) -> Tensor:
    """Between the two halves of a batch of twins: how far guard and relations are apart (symmetric KL)."""
    first, second = said.guard.view(2, -1)
    guards = ((torch.sigmoid(first) - torch.sigmoid(second)) * (first - second)).mean()
    a, b = F.log_softmax(said.relation[batch.labelled], dim=-1).view(2, -1, 3)
    return guards + ((a.exp() - b.exp()) * (a - b)).sum(-1).mean()


def fit(
    cases: Sequence[Case],
    parts: dict[str, Parts],
    base: Path,
    options: TrainOptions,
    start: Path | None = None,
) -> tuple[DecomposerNetwork, NetworkConfig]:
    """Train on a pool of cases, from the pretrained encoder or from the weights in `start`; runs on the GPU where there
    is one. What is returned computes as its 8-bit export will."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(options.seed)
    network, config = from_base(base / "base.npz", options.dropout, options.layers)
    if start:
        network.load_state_dict(torch.load(start, weights_only=True))
    network.to(device).train()
    average = AveragedModel(network, multi_avg_fn=get_ema_multi_avg_fn(AVERAGED))
    optimizer, schedule = _optimizer(network, options)
    loader = DataLoader(
        DrawnBatches(cases, parts, base / "tokenizer.json", options),
        batch_size=None,
        num_workers=options.workers,
        prefetch_factor=4 if options.workers else None,
    )
    begun = time.perf_counter()
    with Progress() as progress:
        bar = progress.add_task("training", total=options.steps)
        for step, drawn in zip(range(options.steps), loader, strict=False):
            batch = drawn.to(device)
            if step == round((1 - options.rehearsal) * options.steps):
                wide = widest_channels(average.module.eval(), typical(cases, base))
                rehearse(network, wide)
                rehearse(average.module, wide)
            with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
                said = logits_of(network, _blurred(batch, options.blur))
                parts_of_loss = losses(said, batch, options)
            _step(network, torch.stack(list(parts_of_loss.values())).sum(), optimizer)
            schedule.step()
            average.update_parameters(network)
            if step % 50 == 0:
                shown = " ".join(f"{name} {float(value):.3f}" for name, value in parts_of_loss.items())
                progress.update(bar, completed=step, description=shown)
            if step % 500 == 0:
                progress.console.print(f"step {step}, {time.perf_counter() - begun:.0f} s: {shown}")
    averaged: DecomposerNetwork = average.module
    return averaged.eval(), config


def typical(cases: Sequence[Case], base: Path) -> list[Encoding]:
    """Prompts, some long and some short, for what depends on how wide activations are."""
    tokenizer = PromptTokenizer(base / "tokenizer.json")
    some = cases[:: max(1, len(cases) // TYPICAL)]
    encodings = (tokenizer.encode(case.prompt, context_of(case.context)) for case in some)
    return [encoding for encoding in encodings if len(encoding.ids) <= WINDOW]


def _step(network: DecomposerNetwork, loss: Tensor, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    optimizer.step()


def _blurred(batch: Batch, most: float) -> Batch:
    """Up to this share of each prompt's tokens unreadable or taken from elsewhere, so that no single word decides."""
    ids = batch.ids
    chance = torch.rand(len(ids), 1, device=ids.device) * most
    hidden = (torch.rand(ids.shape, device=ids.device) < chance) & (ids > UNKNOWN)
    foreign = ids.flatten()[torch.randint(ids.numel(), ids.shape, device=ids.device)].clamp_min(UNKNOWN)
    unreadable = torch.rand(ids.shape, device=ids.device) < 0.5
    return replace(batch, ids=torch.where(hidden, foreign.masked_fill(unreadable, UNKNOWN), ids))


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


def reader(network: DecomposerNetwork, tokenizer: PromptTokenizer) -> Callable[[Case], Reading]:
    """Case to reading at float32, as wide as could be; a prompt longer than the window is one task."""

    def of(case: Case) -> Reading:
        encoding = tokenizer.encode(case.prompt, context_of(case.context))
        if len(encoding.ids) > WINDOW:
            return Reading(Plan.atomic(case.prompt), "too long")
        return read_freely(case.prompt, encoding.spans, run(network, encoding), FREE)

    return of
