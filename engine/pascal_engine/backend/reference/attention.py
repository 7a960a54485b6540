"""Causal attention over pages of keys: every reduction is over one page, pages are added in order."""

import numpy as np
import numpy.typing as npt

from pascal_engine.backend.batch import BLOCK, Batch
from pascal_engine.backend.kv import Pool, decoded, encoded

F32 = npt.NDArray[np.float32]


def store(pool: Pool, new: F32, batch: Batch) -> None:
    """Writes the valid tokens of `new` [n, T, kv_heads, head_dim] at their positions."""
    valid = batch.valid
    positions = batch.positions[valid]
    rows = np.repeat(batch.rows, batch.lengths)
    pool[rows, positions // BLOCK, :, positions % BLOCK] = encoded(new[valid], pool)


def attend(q: F32, keys: Pool, values: Pool, batch: Batch) -> F32:
    """Attention of q [n, T, heads, head_dim] over the pools.

    Pages behind a sequence's last token are masked: they add exact zeros, so that a longer neighbour (whose pages set
    the common count) changes nothing. Entries never written are zero, see `memory`.
    """
    n, width, n_heads, head_dim = q.shape
    n_kv = keys.shape[2]
    n_pages = int(batch.positions.max()) // BLOCK + 1
    k, v = (decoded(pool[batch.rows, :n_pages], head_dim) for pool in (keys, values))
    grouped = q.reshape(n, width, n_kv, n_heads // n_kv, head_dim).transpose(0, 2, 3, 1, 4)
    grouped = np.ascontiguousarray(grouped).reshape(n, 1, n_kv, -1, head_dim)
    scores = np.matmul(grouped, k.swapaxes(-1, -2)) * np.float32(head_dim**-0.5)
    weights, total = _softmax(scores.reshape(n, n_pages, n_kv, -1, width, BLOCK), batch)
    products = np.matmul(weights.reshape(scores.shape), v)
    out = _sum_pages(products).reshape(n, n_kv, -1, width, head_dim) / total[..., None]
    return np.ascontiguousarray(out.transpose(0, 3, 1, 2, 4)).reshape(q.shape)


def _softmax(scores: F32, batch: Batch) -> tuple[F32, F32]:
    """Unnormalised weights of scores [n, pages, kv_heads, group, T, BLOCK], and their sums [n, kv_heads, group, T]."""
    n_pages = scores.shape[1]
    key_positions = np.arange(n_pages * BLOCK).reshape(1, n_pages, 1, 1, 1, BLOCK)
    seen = key_positions <= batch.positions[:, None, None, None, :, None]
    scores = np.where(seen, scores, np.float32(-np.inf))
    weights = np.exp(scores - scores.max(axis=(1, 5), keepdims=True))
    return weights, _sum_pages(weights.sum(axis=-1))


def _sum_pages(parts: F32) -> F32:
    """Sum over axis 1 in page order; zeros of masked pages at the end leave every bit as it is."""
    total = parts[:, 0].copy()
    for page in range(1, parts.shape[1]):
        total += parts[:, page]
    return total
