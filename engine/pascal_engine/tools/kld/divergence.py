"""How far distributions are apart, position by position."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pascal_engine.errors import ModelError
from pascal_engine.tools.kld.sources import F32, Source
from pascal_engine.tools.progress import Report

F64 = npt.NDArray[np.float64]

_PIECE = 1 << 20
"""Logits that are turned into float64 at a time."""


@dataclass(frozen=True)
class Estimate:
    """A mean and its standard error, positions taken as independent."""

    value: float
    error: float

    @classmethod
    def of(cls, values: F64) -> "Estimate":
        error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.inf
        return cls(float(values.mean()), float(error))

    def exp(self) -> "Estimate":
        """Of the exponential, to first order."""
        value = float(np.exp(self.value))
        return Estimate(value, value * self.error)


@dataclass(frozen=True)
class Divergence:
    """For each scored position: `kl` the Kullback-Leibler divergence (in nats) of B's distribution from A's, whether
    both like the same token best, and the surprise (negative log-probability, in nats) of the text's own next token."""

    kl: F64
    same_top: npt.NDArray[np.bool_]
    surprise_a: F64
    surprise_b: F64

    def to_json(self) -> dict[str, float]:
        """Means with their standard errors (`_se`), and quantiles of the divergence."""
        estimates = {
            "mean_kl": Estimate.of(self.kl),
            "same_top": Estimate.of(self.same_top.astype(np.float64)),
            "ppl_a": Estimate.of(self.surprise_a).exp(),
            "ppl_b": Estimate.of(self.surprise_b).exp(),
            "log_ppl_ratio": Estimate.of(self.surprise_b - self.surprise_a),
        }
        means = {name: estimate.value for name, estimate in estimates.items()}
        errors = {f"{name}_se": estimate.error for name, estimate in estimates.items()}
        median, p99, p999 = np.quantile(self.kl, (0.5, 0.99, 0.999)).tolist()
        quantiles = {"median_kl": median, "p99_kl": p99, "p999_kl": p999, "max_kl": float(self.kl.max())}
        return {"positions": len(self.kl), **means, **errors, **quantiles}


def compare(a: Source, b: Source, report: Report = lambda done, total: None) -> Divergence:
    """Goes through both at once, a block of positions of a chunk at a time. Logits that are no numbers, and
    vocabularies of different sizes, are a `ModelError`."""
    if a.n_vocab != b.n_vocab:
        raise ModelError(
            f"A has {a.n_vocab} tokens in its vocabulary and B {b.n_vocab}; compare models that share one."
        )
    if not np.array_equal(a.chunks.tokens, b.chunks.tokens):
        raise ModelError("A and B have different tokens; compare models of one vocabulary, with the same text and -c.")
    parts: list[tuple[F64, ...]] = []
    n_chunks = len(a.chunks.tokens)
    for chunk in range(n_chunks):
        following = a.chunks.tokens[chunk, a.chunks.first + 1 :]
        for piece, left, right in zip(a.chunks.pieces(), a.logits(chunk), b.logits(chunk), strict=True):
            parts += _compared(left, right, following[piece], min(a.reach, b.reach))
        report(chunk + 1, n_chunks)
    kl, same, surprise_a, surprise_b = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Divergence(kl, same.astype(np.bool_), surprise_a, surprise_b)


def _compared(a: F32, b: F32, following: npt.NDArray[np.int32], reach: float) -> Iterator[tuple[F64, ...]]:
    """Few rows at a time: their divergences, whether the best is the same, and the surprises of both."""
    step = max(_PIECE // a.shape[1], 1)
    for first in range(0, len(a), step):
        some = slice(first, first + step)
        log_a, log_b = log_softmax(a[some], reach), log_softmax(b[some], reach)
        kl: F64 = (np.exp(log_a) * (log_a - log_b)).sum(axis=1)
        rows = np.arange(len(kl))
        same = (log_a.argmax(axis=1) == log_b.argmax(axis=1)).astype(np.float64)
        yield kl, same, -log_a[rows, following[some]], -log_b[rows, following[some]]


def log_softmax(logits: F32, reach: float) -> F64:
    """Over the last axis; logits further than `reach` below the best are lifted to there."""
    if not np.isfinite(logits).all():
        raise ModelError("there are logits that are no numbers; the model is damaged or was converted wrongly.")
    shifted = np.maximum(logits.astype(np.float64) - logits.max(axis=-1, keepdims=True), -reach)
    found: F64 = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return found
