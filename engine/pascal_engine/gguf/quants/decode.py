"""Weights of any supported format to float32."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from gguf import GGML_QUANT_SIZES
from gguf import GGMLQuantizationType as Type

from pascal_engine.gguf.quants import floats, iq, k, legacy
from pascal_engine.gguf.quants.bits import F32, U8

_DECODERS: dict[Type, Callable[[U8], F32]] = {
    Type.F32: floats.f32,
    Type.F16: floats.f16,
    Type.BF16: floats.bf16,
    Type.Q4_0: legacy.q4_0,
    Type.Q4_1: legacy.q4_1,
    Type.Q5_0: legacy.q5_0,
    Type.Q5_1: legacy.q5_1,
    Type.Q8_0: legacy.q8_0,
    Type.Q2_K: k.q2_k,
    Type.Q3_K: k.q3_k,
    Type.Q4_K: k.q4_k,
    Type.Q5_K: k.q5_k,
    Type.Q6_K: k.q6_k,
    Type.IQ4_NL: iq.iq4_nl,
    Type.IQ4_XS: iq.iq4_xs,
    Type.IQ3_XXS: iq.iq3_xxs,
    Type.IQ3_S: iq.iq3_s,
    Type.IQ2_XXS: iq.iq2_xxs,
    Type.IQ2_XS: iq.iq2_xs,
    Type.IQ2_S: iq.iq2_s,
}
# Blocks are decoded so many weights at a time, so that what is made on the way stays in the cache.
_PIECE = 1 << 16


@dataclass(frozen=True)
class Layout:
    """A block holds `n_weights` weights in `n_bytes` bytes."""

    n_weights: int
    n_bytes: int

    def row_bytes(self, n_inputs: int) -> int:
        """Bytes of a row of `n_inputs` weights, which must be whole blocks (else ValueError)."""
        if n_inputs % self.n_weights:
            raise ValueError(f"{n_inputs} weights are no whole blocks of {self.n_weights}")
        return n_inputs // self.n_weights * self.n_bytes


LAYOUTS: dict[Type, Layout] = {kind: Layout(*GGML_QUANT_SIZES[kind]) for kind in _DECODERS}
"""The supported formats and their blocks."""


def dequantize(data: U8, kind: Type) -> F32:
    """float32 [..., weights a row] from uint8 [..., bytes a row], bit for bit as the format's reference decoder gives
    them. A type that is not in `LAYOUTS` is a KeyError, a row that is no whole blocks a ValueError."""
    layout, decode = LAYOUTS[kind], _DECODERS[kind]
    blocks = np.ascontiguousarray(data).reshape(-1, layout.n_bytes)
    n_inputs = data.shape[-1] // layout.n_bytes * layout.n_weights
    values = np.empty((len(blocks), layout.n_weights), np.float32)
    step = max(_PIECE // layout.n_weights, 1)
    # Scales that are infinite or no number are the file's own, and give what IEEE arithmetic makes of them.
    with np.errstate(invalid="ignore", over="ignore"):
        for first in range(0, len(blocks), step):
            values[first : first + step] = decode(blocks[first : first + step])
    return values.reshape(*data.shape[:-1], n_inputs)
