"""The tensors of a shape, and the number format of each."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from math import prod

from gguf import GGMLQuantizationType as Type

from pascal_engine.gguf.quants import LAYOUTS
from pascal_engine.synth.shapes import Experts, Shape

_MIX = "Q4_K_M"
TYPE_NAMES = (_MIX, *(kind.name for kind in LAYOUTS))


class Draw(Enum):
    """How a tensor's values are drawn."""

    MATRIX = auto()
    NORM = auto()
    CONV = auto()
    TIME_STEP = auto()
    DECAY = auto()


@dataclass(frozen=True)
class Planned:
    """One tensor; `shape` in NumPy order (last axis = input)."""

    name: str
    shape: tuple[int, ...]
    type: Type
    draw: Draw

    @property
    def n_elements(self) -> int:
        return prod(self.shape)

    @property
    def row_bytes(self) -> int:
        return LAYOUTS[self.type].row_bytes(self.shape[-1])

    @property
    def n_bytes(self) -> int:
        return prod(self.shape[:-1]) * self.row_bytes


def tensors(shape: Shape, type_name: str) -> list[Planned]:
    """All tensors of `shape`: with a type's name all matrices are of that type, with Q4_K_M as llama.cpp mixes them."""
    return list(_Planner(shape, type_name).model())


class _Planner:
    def __init__(self, shape: Shape, type_name: str) -> None:
        self._shape, self._type_name = shape, type_name

    def model(self) -> Iterator[Planned]:
        shape = self._shape
        yield self._matrix("token_embd", shape.n_vocab, shape.hidden)
        if not shape.tied:
            yield self._matrix("output", shape.n_vocab, shape.hidden)
        yield self._norm("output_norm", shape.hidden)
        for layer in range(shape.n_layers):
            yield from self._layer(layer)

    def _layer(self, layer: int) -> Iterator[Planned]:
        shape, prefix = self._shape, f"blk.{layer}."
        yield self._norm(f"{prefix}attn_norm", shape.hidden)
        yield from self._delta_net(prefix, layer) if shape.recurrent(layer) else self._attention(prefix, layer)
        yield self._norm(f"{prefix}post_attention_norm", shape.hidden)
        if isinstance(shape.feed, Experts):
            yield from self._experts(prefix, layer, shape.feed)
        else:
            yield from self._dense(prefix, "", layer, shape.feed)

    def _attention(self, prefix: str, layer: int) -> Iterator[Planned]:
        shape = self._shape
        width, kv_width = shape.n_heads * shape.head_dim, shape.n_kv_heads * shape.head_dim
        yield self._matrix(f"{prefix}attn_q", 2 * width, shape.hidden)
        yield self._matrix(f"{prefix}attn_k", kv_width, shape.hidden)
        yield self._matrix(f"{prefix}attn_v", kv_width, shape.hidden, layer=layer)
        yield self._matrix(f"{prefix}attn_output", shape.hidden, width)
        yield self._norm(f"{prefix}attn_q_norm", shape.head_dim)
        yield self._norm(f"{prefix}attn_k_norm", shape.head_dim)

    def _delta_net(self, prefix: str, layer: int) -> Iterator[Planned]:
        shape = self._shape
        n_heads, width = shape.n_value_heads, shape.n_value_heads * shape.delta_dim
        yield self._matrix(f"{prefix}attn_qkv", shape.conv_channels, shape.hidden, layer=layer)
        yield self._matrix(f"{prefix}attn_gate", width, shape.hidden)
        yield self._matrix(f"{prefix}ssm_beta", n_heads, shape.hidden)
        yield self._matrix(f"{prefix}ssm_alpha", n_heads, shape.hidden)
        yield self._matrix(f"{prefix}ssm_out", shape.hidden, width)
        yield Planned(f"{prefix}ssm_conv1d.weight", (shape.conv_channels, shape.conv_kernel), Type.F32, Draw.CONV)
        yield Planned(f"{prefix}ssm_dt.bias", (n_heads,), Type.F32, Draw.TIME_STEP)
        yield Planned(f"{prefix}ssm_a", (n_heads,), Type.F32, Draw.DECAY)
        yield self._norm(f"{prefix}ssm_norm", shape.delta_dim)

    def _dense(self, prefix: str, suffix: str, layer: int, width: int) -> Iterator[Planned]:
        hidden = self._shape.hidden
        yield self._matrix(f"{prefix}ffn_gate{suffix}", width, hidden)
        yield self._matrix(f"{prefix}ffn_up{suffix}", width, hidden)
        yield self._matrix(f"{prefix}ffn_down{suffix}", hidden, width, layer=layer)

    def _experts(self, prefix: str, layer: int, experts: Experts) -> Iterator[Planned]:
        hidden, count, width = self._shape.hidden, experts.n_experts, experts.width
        yield Planned(f"{prefix}ffn_gate_inp.weight", (count, hidden), Type.F32, Draw.MATRIX)
        yield self._matrix(f"{prefix}ffn_gate_exps", count, width, hidden)
        yield self._matrix(f"{prefix}ffn_up_exps", count, width, hidden)
        yield self._matrix(f"{prefix}ffn_down_exps", count, hidden, width, layer=layer)
        yield Planned(f"{prefix}ffn_gate_inp_shexp.weight", (hidden,), Type.F32, Draw.MATRIX)
        yield from self._dense(prefix, "_shexp", layer, width)

    def _norm(self, name: str, size: int) -> Planned:
        return Planned(f"{name}.weight", (size,), Type.F32, Draw.NORM)

    def _matrix(self, name: str, *shape: int, layer: int | None = None) -> Planned:
        """`layer` is given for the matrices that the mix keeps finer in some layers: attn_v, attn_qkv, ffn_down."""
        kind = self._mixed(name, layer) if self._type_name == _MIX else Type[self._type_name]
        return Planned(f"{name}.weight", shape, kind, Draw.MATRIX)

    def _mixed(self, name: str, layer: int | None) -> Type:
        is_head = name == "output" or (name == "token_embd" and self._shape.tied)
        if is_head or (layer is not None and _finer(layer, self._shape.n_layers)):
            return Type.Q6_K
        return Type.Q4_K


def _finer(layer: int, n_layers: int) -> bool:
    """Whether the mix spends more bits here: the first and the last eighth of the layers, and every third between."""
    eighth = n_layers // 8
    return layer < eighth or layer >= 7 * n_layers // 8 or (layer - eighth) % 3 == 2
