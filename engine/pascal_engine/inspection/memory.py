"""Memory that a model needs, and how many slots of which context that leaves on cards and on this machine."""

import os
from collections.abc import Iterable
from dataclasses import dataclass

from pascal_engine.gguf import ModelFile
from pascal_engine.hybrid.params import HyperParams

GIB = 1 << 30
KV_BYTES = {"f16": 2, "f32": 4}
_CARDS_GIB = (11, 12, 16, 24)
# A card also holds the driver's context, code and activations; a machine its system and other programs.
_CARD_RESERVE, _MACHINE_RESERVE = GIB, 2 * GIB
_CONTEXTS = (4096, 16_384, 65_536, 262_144)


@dataclass(frozen=True)
class Demand:
    """Bytes: all weights that are used, the recurrent state of one sequence, keys and values of one token as f16."""

    weights: int
    state: int
    kv_token: int

    @classmethod
    def of(cls, file: ModelFile, params: HyperParams) -> "Demand":
        """Blocks for multi-token prediction, behind the trunk, are left out."""
        unused = _behind_trunk(file, params)
        delta, n_recurrent = params.delta_net, sum(params.recurrent)
        state = 0
        if delta is not None:
            floats = delta.n_value_heads * delta.head_dim**2 + (delta.conv_kernel - 1) * delta.conv_channels
            state = 4 * floats * n_recurrent
        n_attention = params.n_layers - n_recurrent
        kv_token = 2 * KV_BYTES["f16"] * n_attention * params.n_kv_heads * params.head_dim
        return cls(file.size_bytes - unused, state, kv_token)

    def kv(self, n_tokens: int, kind: str = "f16") -> int:
        """Bytes of keys and values of `n_tokens` tokens."""
        return self.kv_token * KV_BYTES[kind] // KV_BYTES["f16"] * n_tokens


@dataclass(frozen=True)
class Place:
    """Something to run on; `reserve` bytes of its memory are not for the model."""

    name: str
    memory: int
    reserve: int


@dataclass(frozen=True)
class Fit:
    """`slots[kind][context]` sequences fit into the place, each of so many tokens, beside the weights."""

    place: Place
    slots: dict[str, dict[int, int]]


def places() -> list[Place]:
    """Common cards, and the machine at hand."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    cards = [Place(f"{size} GB card", size * GIB, _CARD_RESERVE) for size in _CARDS_GIB]
    return [*cards, Place(f"this machine, {memory / GIB:.0f} GB", memory, _MACHINE_RESERVE)]


def fits(demand: Demand, where: Iterable[Place], longest: int) -> list[Fit]:
    """What fits in each place, for usual contexts up to the model's `longest`."""
    contexts = [size for size in _CONTEXTS if size < longest] + [longest]
    return [
        Fit(place, {kind: {size: _slots(demand, place, size, kind) for size in contexts} for kind in KV_BYTES})
        for place in where
    ]


def _slots(demand: Demand, place: Place, context: int, kind: str) -> int:
    free = place.memory - place.reserve - demand.weights
    return max(free, 0) // (demand.state + demand.kv(context, kind))


def _behind_trunk(file: ModelFile, params: HyperParams) -> int:
    trunk = tuple(f"blk.{layer}." for layer in range(params.n_layers))
    return sum(
        tensor.data.nbytes
        for tensor in file.tensors
        if tensor.name.startswith("blk.") and not tensor.name.startswith(trunk)
    )
