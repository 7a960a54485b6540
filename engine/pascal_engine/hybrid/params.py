"""Hyper-parameters of a model, read from the metadata and checked."""

import math
from dataclasses import dataclass

from pascal_engine.errors import ModelError
from pascal_engine.gguf import ModelFile

ARCHITECTURES = ("llama", "qwen3next", "qwen35", "qwen35moe")

# No model has as many; a damaged number must not become an allocation.
_MOST_LAYERS = _MOST_HEADS = 10_000
_LONGEST_CONTEXT = 1 << 24


@dataclass(frozen=True)
class DeltaNetParams:
    """Shapes of the gated delta-net layers.

    `key_head` gives, for each value head, the key head that it reads: files of qwen35 and qwen35moe tile the value
    heads over the key heads, those of qwen3next group them.
    """

    n_key_heads: int
    n_value_heads: int
    head_dim: int
    conv_kernel: int
    key_head: tuple[int, ...]

    @property
    def key_width(self) -> int:
        return self.n_key_heads * self.head_dim

    @property
    def value_width(self) -> int:
        return self.n_value_heads * self.head_dim

    @property
    def conv_channels(self) -> int:
        return 2 * self.key_width + self.value_width


@dataclass(frozen=True)
class ExpertParams:
    """Shapes of a mixture-of-experts feed-forward layer with one shared expert."""

    n_experts: int
    n_used: int
    width: int
    shared_width: int


@dataclass(frozen=True)
class HyperParams:
    """All that the forward pass needs to know besides the weights; `recurrent[i]` says which kind layer i is."""

    architecture: str
    hidden: int
    context_length: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    rope_dim: int
    rope_base: float
    eps: float
    feed_forward: int
    recurrent: tuple[bool, ...]
    delta_net: DeltaNetParams | None
    experts: ExpertParams | None

    @property
    def n_layers(self) -> int:
        return len(self.recurrent)

    @property
    def gated_attention(self) -> bool:
        return self.architecture != "llama"


def read_params(file: ModelFile) -> HyperParams:
    """Hyper-parameters of `file`; an architecture or a variant that is not supported is a `ModelError`."""
    arch = file.architecture
    if arch not in ARCHITECTURES:
        raise ModelError(
            f"{file.path}: architecture '{arch}' is not supported; choose a model of {', '.join(ARCHITECTURES)}."
        )
    _refuse_rope_scaling(file, arch)
    hidden = file.require(f"{arch}.embedding_length", int)
    n_heads = file.require(f"{arch}.attention.head_count", int)
    head_dim = file.get(f"{arch}.attention.key_length", int) or hidden // max(n_heads, 1)
    recurrent = _recurrent_layers(file, arch)
    params = HyperParams(
        architecture=arch,
        hidden=hidden,
        context_length=file.require(f"{arch}.context_length", int),
        n_heads=n_heads,
        n_kv_heads=file.get(f"{arch}.attention.head_count_kv", int) or n_heads,
        head_dim=head_dim,
        rope_dim=file.get(f"{arch}.rope.dimension_count", int) or head_dim,
        rope_base=file.get(f"{arch}.rope.freq_base", float) or 10000.0,
        eps=file.require(f"{arch}.attention.layer_norm_rms_epsilon", float),
        feed_forward=file.get(f"{arch}.feed_forward_length", int) or 0,
        recurrent=recurrent,
        delta_net=_delta_net(file, arch) if any(recurrent) else None,
        experts=_experts(file, arch) if arch in ("qwen3next", "qwen35moe") else None,
    )
    _check(file, params)
    return params


def _check(file: ModelFile, params: HyperParams) -> None:
    delta, experts = params.delta_net, params.experts
    sound = (
        params.n_layers > 0
        and min(params.hidden, params.context_length, params.n_heads, params.n_kv_heads, params.head_dim) > 0
        and params.context_length <= _LONGEST_CONTEXT
        and params.n_heads % params.n_kv_heads == 0
        and 0 < params.rope_dim <= params.head_dim
        and params.rope_dim % 2 == 0
        and math.isfinite(params.eps)
        and 0 < params.rope_base < math.inf
        and (delta is None or min(delta.head_dim, delta.conv_kernel) > 0)
        and (experts is None or 0 < experts.n_used <= experts.n_experts)
    )
    if not sound:
        raise ModelError(f"{file.path}: its hyper-parameters contradict each other; convert the model anew.")


def _refuse_rope_scaling(file: ModelFile, arch: str) -> None:
    scaling = file.get(f"{arch}.rope.scaling.type", str) or "none"
    if scaling != "none":
        raise ModelError(f"{file.path}: rope scaling '{scaling}' is not supported; choose a model without it.")


def _recurrent_layers(file: ModelFile, arch: str) -> tuple[bool, ...]:
    """One flag for each trunk layer; the multi-token-prediction blocks at the end of the file are left out."""
    n_layers = file.require(f"{arch}.block_count", int) - (file.get(f"{arch}.nextn_predict_layers", int) or 0)
    if not 0 < n_layers <= _MOST_LAYERS:
        raise ModelError(f"{file.path}: {n_layers} layers make no model; the file is damaged, fetch it again.")
    if arch == "llama":
        return (False,) * n_layers
    flags = file.get(f"{arch}.attention.recurrent_layers", list)
    if flags is not None:
        return tuple(bool(flag) for flag in flags[:n_layers])
    interval = file.require(f"{arch}.full_attention_interval", int)
    return tuple((layer + 1) % max(interval, 1) != 0 for layer in range(n_layers))


def _delta_net(file: ModelFile, arch: str) -> DeltaNetParams:
    n_key, n_value = (file.require(f"{arch}.ssm.{key}", int) for key in ("group_count", "time_step_rank"))
    if n_key < 1 or n_value % n_key or not 0 < n_value <= _MOST_HEADS:
        raise ModelError(f"{file.path}: {n_value} value heads do not go into {n_key} key heads.")
    grouped = arch == "qwen3next"
    return DeltaNetParams(
        n_key_heads=n_key,
        n_value_heads=n_value,
        head_dim=file.require(f"{arch}.ssm.state_size", int),
        conv_kernel=file.require(f"{arch}.ssm.conv_kernel", int),
        key_head=tuple(head // (n_value // n_key) if grouped else head % n_key for head in range(n_value)),
    )


def _experts(file: ModelFile, arch: str) -> ExpertParams:
    return ExpertParams(
        n_experts=file.require(f"{arch}.expert_count", int),
        n_used=file.require(f"{arch}.expert_used_count", int),
        width=file.require(f"{arch}.expert_feed_forward_length", int),
        shared_width=file.require(f"{arch}.expert_shared_feed_forward_length", int),
    )
