"""The baseline for comparison: one pass for each pair of sub-tasks, both marked in the prompt by layout embeddings."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from decomp_gauntlet.cases import Case
from decomp_model.augment import Augmenter, Parts
from decomp_model.dataset import Example, encode
from decomp_model.network import Encoder, from_base
from decomp_model.train import POOLED_BATCHES, TrainOptions
from decomp_router.decompose.tokens import LAYOUTS, PAD, PromptTokenizer

FIRST, SECOND = LAYOUTS, LAYOUTS + 1
"""Layout ids of the tokens of the two sub-tasks in question."""


class PairwiseNetwork(nn.Module):
    """Encoder and a classifier on the first token and the means of both sub-tasks."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        known = encoder.layouts.weight.data
        encoder.layouts = nn.Embedding(LAYOUTS + 2, known.shape[1])
        encoder.layouts.weight.data[:LAYOUTS] = known
        self.encoder = encoder
        self.hidden = nn.Linear(3 * known.shape[1], known.shape[1])
        self.relation = nn.Linear(known.shape[1], 3)

    def forward(self, ids: Tensor, layout: Tensor) -> Tensor:
        """ids, layout int64 [B, L] -> [B, 3]: independent, second needs first, first needs second."""
        x = self.encoder(ids, layout)
        marked = [(layout == mark).to(x.dtype)[..., None] for mark in (FIRST, SECOND)]
        means = [(x * mark).sum(1) / mark.sum(1) for mark in marked]
        return self.relation(torch.tanh(self.hidden(torch.cat([x[:, 0], *means], dim=-1))))


@dataclass(frozen=True)
class Pair:
    """One pair of an example: its ids, and the layout that marks it."""

    ids: list[int]
    layout: list[int]
    relation: int


def pairs_of(example: Example) -> Iterator[Pair]:
    """All pairs of sub-tasks of one example."""
    for first, second, relation in example.pairs:
        layout = list(example.layout)
        for mark, (begin, end) in ((FIRST, first), (SECOND, second)):
            layout[begin:end] = [mark] * (end - begin)
        yield Pair(example.ids, layout, relation)


def collate(pairs: Sequence[Pair]) -> tuple[Tensor, Tensor, Tensor]:
    """ids, layout [B, L], relations [B]."""
    width = max(len(pair.ids) for pair in pairs)
    ids = torch.tensor([pair.ids + [PAD] * (width - len(pair.ids)) for pair in pairs])
    layout = torch.tensor([pair.layout + [0] * (width - len(pair.ids)) for pair in pairs])
    return ids, layout, torch.tensor([pair.relation for pair in pairs])


class DrawnPairs(IterableDataset[tuple[Tensor, Tensor, Tensor]]):
    """An endless stream of batches of pairs from the same recombined cases that the one-pass network learns from."""

    def __init__(self, cases: Sequence[Case], parts: dict[str, Parts], tokenizer: Path, options: TrainOptions) -> None:
        self._cases, self._parts, self._tokenizer, self._options = cases, parts, tokenizer, options

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        info = get_worker_info()
        rng = random.Random(self._options.seed * 1000 + (info.id if info else 0))
        augmenter, tokenizer = Augmenter(self._cases, self._parts, rng), PromptTokenizer(self._tokenizer)
        drawn = (encode(augmenter.draw(), tokenizer, rng) for _ in itertools.count())
        pairs = (pair for example in drawn if example is not None for pair in pairs_of(example))
        size = self._options.batch
        while True:
            pool = sorted(itertools.islice(pairs, size * POOLED_BATCHES), key=lambda pair: len(pair.ids))
            batches = [pool[i : i + size] for i in range(0, len(pool), size)]
            rng.shuffle(batches)
            yield from map(collate, batches)


def fit_pairwise(cases: Sequence[Case], parts: dict[str, Parts], base: Path, options: TrainOptions) -> PairwiseNetwork:
    """Train the baseline with the same options."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(options.seed)
    network = PairwiseNetwork(from_base(base / "base.npz", options.dropout, options.layers)[0].encoder)
    network.to(device)
    optimizer = torch.optim.AdamW(network.parameters(), lr=options.encoder_rate, weight_decay=options.weight_decay)
    warm = options.warmup * options.steps
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(step / warm, max(0.0, (options.steps - step) / (options.steps - warm)))
    )
    drawn = DrawnPairs(cases, parts, base / "tokenizer.json", options)
    loader = DataLoader(drawn, batch_size=None, num_workers=options.workers)
    for _, batch in zip(range(options.steps), loader, strict=False):
        ids, layout, relations = (tensor.to(device) for tensor in batch)
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            loss = F.cross_entropy(network(ids, layout).float(), relations)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    network.eval()
    return network
