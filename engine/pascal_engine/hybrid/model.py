"""The forward pass of all architectures, written once against the backend's operations."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pascal_engine.backend.batch import Batch
from pascal_engine.backend.protocol import Backend, Tensor
from pascal_engine.gguf import ModelFile
from pascal_engine.hybrid.params import HyperParams, read_params
from pascal_engine.hybrid.weights import (
    AttentionWeights,
    DeltaNetWeights,
    DenseWeights,
    ExpertWeights,
    ModelWeights,
    load_weights,
)
from pascal_engine.memory import KvPool, RecurrentPool, StatePools


class Model:
    """A network ready to compute: `forward` takes a batch to the logits of each sequence's next token."""

    def __init__(self, params: HyperParams, weights: ModelWeights, backend: Backend, n_ctx: int) -> None:
        self.params = params
        self._weights = weights
        self._backend = backend
        self._rope = backend.rope_table(n_ctx, _inverse_frequencies(params, weights))

    @classmethod
    def load(
        cls,
        file: ModelFile,
        backend: Backend,
        n_vocab: int,
        n_ctx: int,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> "Model":
        """Reads the weights of `file` for contexts of up to `n_ctx` tokens; errors are `ModelError`."""
        params = read_params(file)
        return cls(params, load_weights(file, params, backend, n_vocab, progress), backend, n_ctx)

    def forward(self, batch: Batch, pools: StatePools) -> npt.NDArray[np.float32]:
        """Logits [n, vocabulary] after each sequence's last valid token; the pools' rows advance by the batch."""
        return self._logits(self._backend.last_valid(self._layers(batch, pools), batch))

    def forward_all(self, batch: Batch, pools: StatePools) -> npt.NDArray[np.float32]:
        """As `forward`, but the logits [tokens, vocabulary] after every valid token, sequence after sequence."""
        return self._logits(self._backend.all_valid(self._layers(batch, pools), batch))

    def hidden(self, batch: Batch, pools: StatePools) -> npt.NDArray[np.float32]:
        """What `forward_all` makes logits of, [tokens, hidden]; the pools' rows advance by the batch."""
        backend = self._backend
        return backend.to_numpy(self._normed(backend.all_valid(self._layers(batch, pools), batch)))[:, 0]

    def _layers(self, batch: Batch, pools: StatePools) -> Tensor:
        backend, weights, eps = self._backend, self._weights, self.params.eps
        x = backend.embed(weights.embedding, batch)
        for layer, pool in zip(weights.layers, pools.layers, strict=True):
            x = backend.add(x, self._mix(layer.mixer, pool, backend.rms_norm(x, layer.mixer_norm, eps), batch))
            x = backend.add(x, self._feed(layer.feed, backend.rms_norm(x, layer.feed_norm, eps)))
        return x

    def _normed(self, x: Tensor) -> Tensor:
        return self._backend.rms_norm(x, self._weights.output_norm, self.params.eps)

    def _logits(self, x: Tensor) -> npt.NDArray[np.float32]:
        return self._backend.to_numpy(self._backend.linear(self._normed(x), self._weights.output))[:, 0]

    def _mix(
        self, mixer: AttentionWeights | DeltaNetWeights, pool: KvPool | RecurrentPool, x: Tensor, batch: Batch
    ) -> Tensor:
        if isinstance(mixer, AttentionWeights):
            assert isinstance(pool, KvPool)
            return self._attention(mixer, pool, x, batch)
        assert isinstance(pool, RecurrentPool)
        return self._delta_net(mixer, pool, x, batch)

    def _attention(self, weights: AttentionWeights, pool: KvPool, x: Tensor, batch: Batch) -> Tensor:
        backend, params = self._backend, self.params
        width, kv_width = params.n_heads * params.head_dim, params.n_kv_heads * params.head_dim
        gate_width = width if params.gated_attention else 0
        q, gate, k, v = _split(backend.linear(x, weights.project), width, gate_width, kv_width, kv_width)
        q, k, v = (_heads(part, params.head_dim) for part in (q, k, v))
        if weights.q_norm is not None:
            q = backend.rms_norm(q, weights.q_norm, params.eps)
            k = backend.rms_norm(k, weights.k_norm, params.eps)
        q, k = (backend.rope(part, self._rope, batch) for part in (q, k))
        out = backend.attention(q, k, v, pool.keys, pool.values, batch).reshape(*x.shape[:2], width)
        if params.gated_attention:
            out = backend.sigmoid_gate(out, gate)
        return backend.linear(out, weights.output)

    def _delta_net(self, weights: DeltaNetWeights, pool: RecurrentPool, x: Tensor, batch: Batch) -> Tensor:
        backend, delta, eps = self._backend, self.params.delta_net, self.params.eps
        assert delta is not None
        n_value = delta.n_value_heads
        mixed, z, beta, alpha = _split(
            backend.linear(x, weights.project), delta.conv_channels, delta.value_width, n_value, n_value
        )
        mixed = backend.causal_conv(mixed, weights.conv, pool.conv, batch)
        parts = _split(mixed, delta.key_width, delta.key_width, delta.value_width)
        q, k, v = (_heads(part, delta.head_dim) for part in parts)
        q, k = (backend.take_heads(backend.l2_norm(part, eps), delta.key_head) for part in (q, k))
        gates = backend.delta_gates(alpha, beta, weights.a, weights.dt)
        out = backend.delta_rule(q, k, v, gates, pool.states, batch)
        out = backend.silu_gate(backend.rms_norm(out, weights.norm, eps), _heads(z, delta.head_dim))
        return backend.linear(out.reshape(*x.shape[:2], delta.value_width), weights.output)

    def _feed(self, weights: DenseWeights | ExpertWeights, x: Tensor) -> Tensor:
        backend = self._backend
        if isinstance(weights, DenseWeights):
            return self._dense(weights, x)
        assert self.params.experts is not None
        routed = backend.experts(x, weights.router, weights.gate_up, weights.down, self.params.experts.n_used)
        shared = backend.sigmoid_gate(self._dense(weights.shared, x), backend.linear(x, weights.shared_gate))
        return backend.add(routed, shared)

    def _dense(self, weights: DenseWeights, x: Tensor) -> Tensor:
        gate_up = self._backend.linear(x, weights.gate_up)
        gate, up = _split(gate_up, gate_up.shape[-1] // 2, gate_up.shape[-1] // 2)
        return self._backend.linear(self._backend.silu_gate(up, gate), weights.down)


def _split(x: Tensor, *widths: int) -> list[Tensor]:
    """Consecutive parts of the last axis."""
    parts, begin = [], 0
    for width in widths:
        parts.append(x[..., begin : begin + width])
        begin += width
    return parts


def _heads(x: Tensor, head_dim: int) -> Tensor:
    """[n, T, heads * head_dim] to [n, T, heads, head_dim]."""
    return x.reshape(*x.shape[:2], -1, head_dim)


def _inverse_frequencies(params: HyperParams, weights: ModelWeights) -> npt.NDArray[np.float64]:
    exponents = np.arange(0, params.rope_dim, 2, dtype=np.float64) / params.rope_dim
    frequencies: npt.NDArray[np.float64] = params.rope_base**-exponents
    return frequencies if weights.rope_factors is None else frequencies / weights.rope_factors
