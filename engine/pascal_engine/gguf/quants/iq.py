"""Formats with a code book: IQ4_NL, IQ4_XS, and the IQ2 and IQ3 families whose entries are several weights' sizes.

The two-bit formats weigh by d (1/2 + scale) / 4, the three-bit ones by d (1/2 + scale) / 2 or d (1 + 2 scale).
"""

import numpy as np
import numpy.typing as npt
from gguf import GGMLQuantizationType as Type

from pascal_engine.gguf.quants.bits import F32, U8, centred, half, unpack
from pascal_engine.gguf.quants.tables import GRIDS, IQ4_VALUES, SIGNS

_VALUES = IQ4_VALUES.astype(np.float32)
_SIGNED = np.where(np.arange(256)[:, None] >> np.arange(8) & 1, np.float32(-1), np.float32(1))


def iq4_nl(blocks: U8) -> F32:
    """d f16 | 16 bytes of 4 bits; 32 weights: d value[q]."""
    return half(blocks, 0) * _VALUES[unpack(blocks[:, 2:], 4, 16)]


def iq4_xs(blocks: U8) -> F32:
    """d f16 | upper two bits of the scales, uint16 | their lower four, 4 bytes | 128 bytes of 4 bits.
    Groups of 32: d (scale - 32) value[q]."""
    scales = unpack(blocks[:, 4:8], 4, 1) | unpack(blocks[:, 2:4], 2, 1) << np.uint8(4)
    weights = half(blocks, 0) * centred(scales, 32)
    values = _VALUES[unpack(blocks[:, 8:], 4, 16)]
    return _scaled(weights, values)


def iq2_xxs(blocks: U8) -> F32:
    """d f16 | for each 32 weights: 4 bytes of entries, then uint32 of 4 x 7 bits of signs and 4 bits of scale."""
    words = np.ascontiguousarray(blocks[:, 2:]).view("<u4").reshape(len(blocks), 8, 2)
    entries = np.ascontiguousarray(words[:, :, 0]).view(np.uint8)
    scales, signs = _scales_and_signs(words[:, :, 1])
    return _coded(Type.IQ2_XXS, _halves(half(blocks, 0), scales, 0.25), entries, signs)


def iq2_xs(blocks: U8) -> F32:
    """d f16 | 32 uint16 of 9 bits of entry and 7 bits of signs | 8 bytes of scales of 4 bits, one for 16 weights."""
    words = np.ascontiguousarray(blocks[:, 2:66]).view("<u2")
    weights = _halves(half(blocks, 0), unpack(blocks[:, 66:], 4, 1), 0.25)
    return _coded(Type.IQ2_XS, weights, words & np.uint16(511), SIGNS[words >> np.uint16(9)])


def iq2_s(blocks: U8) -> F32:
    """d f16 | 32 bytes of entries | 32 bytes of signs | 8 bytes of the entries' upper 2 bits | 8 bytes of scales."""
    entries = blocks[:, 2:34] | unpack(blocks[:, 66:74], 2, 1).astype(np.uint16) << np.uint16(8)
    weights = _halves(half(blocks, 0), unpack(blocks[:, 74:], 4, 1), 0.25)
    return _coded(Type.IQ2_S, weights, entries, blocks[:, 34:66])


def iq3_xxs(blocks: U8) -> F32:
    """d f16 | 64 bytes of entries | for each 32 weights uint32 of 4 x 7 bits of signs and 4 bits of scale."""
    scales, signs = _scales_and_signs(np.ascontiguousarray(blocks[:, 66:]).view("<u4"))
    return _coded(Type.IQ3_XXS, _halves(half(blocks, 0), scales, 0.5), blocks[:, 2:66], signs)


def iq3_s(blocks: U8) -> F32:
    """d f16 | 64 bytes of entries | 8 bytes of their ninth bits | 32 bytes of signs | 4 bytes of scales of 4 bits."""
    entries = blocks[:, 2:66] | unpack(blocks[:, 66:74], 1, 1).astype(np.uint16) << np.uint16(8)
    scales = unpack(blocks[:, 106:], 4, 1)
    weights = half(blocks, 0) * (np.uint8(1) + np.uint8(2) * scales).astype(np.float32)
    return _coded(Type.IQ3_S, weights, entries, blocks[:, 74:106])


def _scales_and_signs(words: npt.NDArray[np.uint32]) -> tuple[npt.NDArray[np.uint32], U8]:
    """uint32 [n, 8] and sign bytes [n, 32] from words of 4 x 7 bits of signs below 4 bits of scale."""
    fields = words[:, :, None] >> np.arange(0, 28, 7, dtype=np.uint32) & np.uint32(127)
    return words >> np.uint32(28), SIGNS[fields].reshape(len(words), -1)


def _halves(d: F32, scales: npt.NDArray[np.unsignedinteger], unit: float) -> F32:
    return d * (np.float32(0.5) + scales.astype(np.float32)) * np.float32(unit)


def _coded(kind: Type, weights: F32, entries: npt.NDArray[np.unsignedinteger], signs: U8) -> F32:
    """Weight times magnitude times sign; `weights` [n, groups], `entries` [n, any], `signs` one byte for 8 weights."""
    n_blocks = len(weights)
    values = _GRIDS[kind][entries].reshape(n_blocks, -1) * _SIGNED[signs].reshape(n_blocks, -1)
    return _scaled(weights, values)


def _scaled(weights: F32, values: F32) -> F32:
    n_blocks, n_groups = weights.shape
    return (weights[:, :, None] * values.reshape(n_blocks, n_groups, -1)).reshape(n_blocks, -1)


_GRIDS = {kind: grid.astype(np.float32) for kind, grid in GRIDS.items()}
