"""The recurrent operations: causal convolution and the gated delta rule, batched over rows of a pool."""

import numpy as np
import numpy.typing as npt

from pascal_engine.backend.batch import Batch

F32 = npt.NDArray[np.float32]


def sigmoid(x: F32) -> F32:
    with np.errstate(over="ignore"):
        return np.float32(1) / (np.float32(1) + np.exp(-x))


def causal_conv(x: F32, kernel: F32, pool: F32, batch: Batch) -> F32:
    """Depthwise convolution over time of x [n, T, channels] with kernel [channels, K]; pool [rows, K - 1, channels]."""
    width, n_taps = x.shape[1], kernel.shape[1]
    history = pool[batch.rows]
    window = np.concatenate([history, x], axis=1)
    # The inputs before the first token take the place of the padding before it, those before the end are kept.
    taps = np.arange(n_taps - 1)
    before, kept = ((edge[:, None] + taps)[:, :, None] for edge in (batch.firsts, batch.ends))
    np.put_along_axis(window, before, history, axis=1)
    out = window[:, :width] * kernel[:, 0]
    for tap in range(1, n_taps):
        out += window[:, tap : tap + width] * kernel[:, tap]
    pool[batch.rows] = np.take_along_axis(window, kept, axis=1)
    return out


def delta_rule(q: F32, k: F32, v: F32, log_decay: F32, beta: F32, pool: F32, batch: Batch) -> F32:
    """All sequences advance together, token by token; see `Backend.delta_rule`.

    On padding all inputs count as 0: a decay of exp(0) = 1 and a write of 0 leave the state bit for bit as it was.
    """
    valid = batch.valid[:, :, None]
    decay = np.exp(np.where(valid, log_decay, np.float32(0)))
    beta = np.where(valid, beta, np.float32(0))
    q, k, v = (np.where(valid[..., None], part, np.float32(0)) for part in (q, k, v))
    q = q * np.float32(q.shape[-1] ** -0.5)
    state = pool[batch.rows]
    out = np.zeros_like(v)
    for t in range(int(batch.firsts.min()), int(batch.ends.max())):
        state *= decay[:, t, :, None, None]
        delta = beta[:, t, :, None] * (v[:, t] - _read(state, k[:, t]))
        state += k[:, t, :, :, None] * delta[:, :, None, :]
        out[:, t] = _read(state, q[:, t])
    pool[batch.rows] = state
    return out


def _read(state: F32, vector: F32) -> F32:
    """state^T vector for each sequence and head: [n, heads, D, D], [n, heads, D] to [n, heads, D]."""
    product: F32 = np.matmul(vector[:, :, None, :], state)
    return product[:, :, 0]
