"""Mixture of experts: a token's output does not depend on who else chose its experts."""

import numpy as np
import numpy.typing as npt

from pascal_engine.backend.reference.delta_net import sigmoid
from pascal_engine.backend.reference.matrix import Matrix

F32 = npt.NDArray[np.float32]


def route(logits: F32, n_used: int) -> tuple[npt.NDArray[np.int64], F32]:
    """Experts [m, n_used] by falling probability (ties: the lower number first) and their renormalised weights."""
    chosen = np.argsort(-logits, axis=-1, kind="stable")[:, :n_used]
    # Renormalised over the chosen, the softmax over all experts is the softmax over the chosen.
    best = np.take_along_axis(logits, chosen, axis=-1)
    weights = np.exp(best - best[:, :1])
    return chosen, weights / weights.sum(axis=-1, keepdims=True)


def mixture(x: F32, router: Matrix, gate_up: Matrix, down: Matrix, n_used: int) -> F32:
    """Weighted sum of the chosen experts' outputs for each row of x [m, hidden]."""
    chosen, weights = route(router.rows(x), n_used)
    outputs = np.empty((*chosen.shape, x.shape[1]), np.float32)
    for expert in sorted(set(chosen.ravel().tolist())):
        token, rank = np.nonzero(chosen == expert)
        outputs[token, rank] = _feed_forward(x[token], gate_up.expert(expert), down.expert(expert))
    total = outputs[:, 0] * weights[:, :1]
    for later in range(1, n_used):
        total += outputs[:, later] * weights[:, later : later + 1]
    return total


def _feed_forward(x: F32, gate_up: Matrix, down: Matrix) -> F32:
    gate, up = np.split(gate_up.rows(x), 2, axis=-1)
    return down.rows(gate * sigmoid(gate) * up)
