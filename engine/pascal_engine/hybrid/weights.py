"""The weights of a model, in the arrangement that the forward pass uses."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pascal_engine.backend.protocol import Backend, Tensor
from pascal_engine.errors import ModelError
from pascal_engine.gguf import ModelFile
from pascal_engine.gguf.rows import Rows
from pascal_engine.hybrid.params import HyperParams

F32 = npt.NDArray[np.float32]


@dataclass(frozen=True)
class AttentionWeights:
    """`project` stacks the rows of query, query gate (hybrid models only), key and value."""

    project: Tensor
    output: Tensor
    q_norm: Tensor | None
    k_norm: Tensor | None


@dataclass(frozen=True)
class DeltaNetWeights:
    """`project` stacks the rows of q, k, v (convolved), z (output gate), beta and alpha."""

    project: Tensor
    conv: Tensor
    dt: Tensor
    a: Tensor
    norm: Tensor
    output: Tensor


@dataclass(frozen=True)
class DenseWeights:
    """`gate_up` [2 width, hidden] stacks gate and up."""

    gate_up: Tensor
    down: Tensor


@dataclass(frozen=True)
class ExpertWeights:
    """The routed experts, stacked, and the shared one with its scalar gate [1, hidden]."""

    router: Tensor
    gate_up: Tensor
    down: Tensor
    shared: DenseWeights
    shared_gate: Tensor


@dataclass(frozen=True)
class LayerWeights:
    mixer_norm: Tensor
    mixer: AttentionWeights | DeltaNetWeights
    feed_norm: Tensor
    feed: DenseWeights | ExpertWeights


@dataclass(frozen=True)
class ModelWeights:
    """`embedding` and `output` are the same tensor in models with tied embeddings."""

    embedding: Tensor
    layers: tuple[LayerWeights, ...]
    output_norm: Tensor
    output: Tensor
    rope_factors: F32 | None


def load_weights(
    file: ModelFile, params: HyperParams, backend: Backend, n_vocab: int, progress: Callable[[int, int], None]
) -> ModelWeights:
    """Hands all weights to the backend; `progress(done, total)` is called after each layer. A tensor unknown to
    the architecture is a `ModelError`: it would change the result, so it is not left out."""
    loader = _Loader(file, params, backend)
    embedding = loader.matrix("token_embd", n_vocab, params.hidden)
    output = loader.matrix("output", n_vocab, params.hidden) if file.has("output.weight") else None
    layers = []
    for index in range(params.n_layers):
        layers.append(loader.layer(index))
        progress(index + 1, params.n_layers)
    factors = file.tensor("rope_freqs.weight", params.rope_dim // 2) if file.has("rope_freqs.weight") else None
    weights = ModelWeights(
        embedding=embedding,
        layers=tuple(layers),
        output_norm=loader.vector("output_norm.weight", params.hidden),
        output=embedding if output is None else output,
        rope_factors=factors,
    )
    _refuse_unread(file, params)
    return weights


def _refuse_unread(file: ModelFile, params: HyperParams) -> None:
    """Tensors nobody asked for are an error, but for those of the multi-token-prediction blocks behind the trunk."""
    n_blocks = file.require(f"{params.architecture}.block_count", int)
    unread = file.unread(*(f"blk.{index}." for index in range(params.n_layers, n_blocks)))
    if unread:
        raise ModelError(
            f"{file.path}: it holds {len(unread)} tensors that this engine does not know (for example {unread[0]});"
            " choose another model or a newer engine."
        )


class _Loader:
    """Reads one layer after the other."""

    def __init__(self, file: ModelFile, params: HyperParams, backend: Backend) -> None:
        self._file, self._params, self._backend = file, params, backend

    def vector(self, name: str, *shape: int) -> Tensor:
        return self._backend.vector(self._file.tensor(name, *shape))

    def matrix(self, name: str, *shape: int) -> Tensor:
        return self._backend.matrix([self._file.rows(f"{name}.weight", *shape)])

    def layer(self, index: int) -> LayerWeights:
        params, prefix = self._params, f"blk.{index}."
        feed_norm = "ffn_norm" if params.architecture == "llama" else "post_attention_norm"
        return LayerWeights(
            mixer_norm=self.vector(f"{prefix}attn_norm.weight", params.hidden),
            mixer=self._delta_net(prefix) if params.recurrent[index] else self._attention(prefix),
            feed_norm=self.vector(f"{prefix}{feed_norm}.weight", params.hidden),
            feed=self._dense(prefix, "", params.feed_forward) if params.experts is None else self._experts(prefix),
        )

    def _rows(self, name: str, n_outputs: int) -> Rows:
        return self._file.rows(f"{name}.weight", n_outputs, self._params.hidden)

    def _attention(self, prefix: str) -> AttentionWeights:
        params = self._params
        width, kv_width = params.n_heads * params.head_dim, params.n_kv_heads * params.head_dim
        if params.gated_attention:
            # Query and gate alternate head by head in the file.
            queries = _parts_apart(self._rows(f"{prefix}attn_q", 2 * width), params.n_heads)
            key = self._rows(f"{prefix}attn_k", kv_width)
        else:
            queries = [_pairs_apart(self._rows(f"{prefix}attn_q", width), params.rope_dim)]
            key = _pairs_apart(self._rows(f"{prefix}attn_k", kv_width), params.rope_dim)
        value = self._rows(f"{prefix}attn_v", kv_width)
        norms = [
            self.vector(f"{prefix}attn_{which}_norm.weight", params.head_dim) if params.gated_attention else None
            for which in "qk"
        ]
        project = self._backend.matrix([*queries, key, value])
        return AttentionWeights(project, self.matrix(f"{prefix}attn_output", params.hidden, width), *norms)

    def _delta_net(self, prefix: str) -> DeltaNetWeights:
        params, delta = self._params, self._params.delta_net
        assert delta is not None
        if self._file.has(f"{prefix}ssm_in.weight"):
            raise ModelError(f"{self._file.path}: its layout is that of an old converter; convert the model anew.")
        beta, alpha = self._beta_alpha(prefix, delta.n_key_heads, delta.n_value_heads)
        qkv = self._rows(f"{prefix}attn_qkv", delta.conv_channels)
        gate = self._rows(f"{prefix}attn_gate", delta.value_width)
        return DeltaNetWeights(
            project=self._backend.matrix([qkv, gate, beta, alpha]),
            conv=self._backend.conv_kernel(
                self._file.tensor(f"{prefix}ssm_conv1d.weight", delta.conv_channels, delta.conv_kernel)
            ),
            dt=self.vector(f"{prefix}ssm_dt.bias", delta.n_value_heads),
            a=self.vector(f"{prefix}ssm_a", delta.n_value_heads),
            norm=self.vector(f"{prefix}ssm_norm.weight", delta.head_dim),
            output=self.matrix(f"{prefix}ssm_out", params.hidden, delta.value_width),
        )

    def _beta_alpha(self, prefix: str, n_key: int, n_value: int) -> list[Rows]:
        if not self._file.has(f"{prefix}ssm_ba.weight"):
            return [self._rows(f"{prefix}ssm_{which}", n_value) for which in ("beta", "alpha")]
        # qwen3next: for each key head the betas of its value heads, then their alphas.
        return _parts_apart(self._rows(f"{prefix}ssm_ba", 2 * n_value), n_key)

    def _dense(self, prefix: str, suffix: str, width: int) -> DenseWeights:
        gate, up = (self._rows(f"{prefix}ffn_{part}{suffix}", width) for part in ("gate", "up"))
        down = self.matrix(f"{prefix}ffn_down{suffix}", self._params.hidden, width)
        return DenseWeights(self._backend.matrix([gate, up]), down)

    def _experts(self, prefix: str) -> ExpertWeights:
        hidden, experts = self._params.hidden, self._params.experts
        assert experts is not None
        shape = (experts.n_experts, experts.width, hidden)
        gate, up = (self._file.rows(f"{prefix}ffn_{part}_exps.weight", *shape) for part in ("gate", "up"))
        return ExpertWeights(
            router=self.matrix(f"{prefix}ffn_gate_inp", experts.n_experts, hidden),
            gate_up=self._backend.matrix([gate, up]),
            down=self.matrix(f"{prefix}ffn_down_exps", experts.n_experts, hidden, experts.width),
            shared=self._dense(prefix, "_shexp", experts.shared_width),
            shared_gate=self.matrix(f"{prefix}ffn_gate_inp_shexp", 1, hidden),
        )


def _parts_apart(rows: Rows, n_groups: int) -> list[Rows]:
    """Two kinds of rows that alternate group by group in the file: all of the first kind, all of the second."""
    order = np.arange(rows.n_rows).reshape(n_groups, 2, -1)
    return [rows.take(order[:, part].ravel()) for part in (0, 1)]


def _pairs_apart(rows: Rows, rope_dim: int) -> Rows:
    """Undoes the interleaving of rope pairs in llama files, so that one rope serves all architectures."""
    return rows.take(np.arange(rows.n_rows).reshape(-1, rope_dim // 2, 2).swapaxes(1, 2).ravel())
