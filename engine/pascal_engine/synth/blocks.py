"""Random weights in any format, made without a quantiser: random bytes, with scales that give them a spread."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
from gguf import GGMLQuantizationType as Type

from pascal_engine.gguf.quants import LAYOUTS, dequantize

U8 = npt.NDArray[np.uint8]
_PIECE = 1 << 20
_SAMPLE = 4096


@dataclass(frozen=True)
class _Scales:
    """Where a block keeps its float16 scale, and its minimum: `ratio` scales, which puts the mean at zero."""

    at: int
    least_at: int | None = None
    ratio: float = 0.0


_SCALES = {
    **dict.fromkeys((Type.Q4_0, Type.Q5_0, Type.Q8_0, Type.IQ4_NL, Type.IQ4_XS), _Scales(0)),
    **dict.fromkeys((Type.IQ2_XXS, Type.IQ2_XS, Type.IQ2_S, Type.IQ3_XXS, Type.IQ3_S), _Scales(0)),
    Type.Q4_1: _Scales(0, 2, -7.5),
    Type.Q5_1: _Scales(0, 2, -15.5),
    Type.Q2_K: _Scales(80, 82, 1.5),
    Type.Q3_K: _Scales(108),
    Type.Q4_K: _Scales(0, 2, 7.5),
    Type.Q5_K: _Scales(0, 2, 15.5),
    Type.Q6_K: _Scales(208),
}


def random_weights(kind: Type, shape: tuple[int, ...], spread: float, rng: np.random.Generator) -> U8:
    """uint8 [..., bytes a row]: weights of mean 0 and standard deviation `spread`; `shape` counts weights."""
    row_bytes = LAYOUTS[kind].row_bytes(shape[-1])
    flat = _floats(kind, shape, spread, rng) if kind not in _SCALES else _blocks(kind, shape, spread, rng)
    return flat.reshape(*shape[:-1], row_bytes)


def _floats(kind: Type, shape: tuple[int, ...], spread: float, rng: np.random.Generator) -> U8:
    n_weights = int(np.prod(shape))
    data = np.empty((n_weights, LAYOUTS[kind].n_bytes), np.uint8)
    for first in range(0, n_weights, _PIECE):
        piece = data[first : first + _PIECE]
        values = rng.standard_normal(len(piece), np.float32) * np.float32(spread)
        if kind == Type.F16:
            piece[:] = values.astype("<f2").view(np.uint8).reshape(piece.shape)
        else:  # BF16 is the upper half of a little-endian float32
            piece[:] = values.astype("<f4").view(np.uint8).reshape(len(piece), 4)[:, -piece.shape[1] :]
    return data


def _blocks(kind: Type, shape: tuple[int, ...], spread: float, rng: np.random.Generator) -> U8:
    layout = LAYOUTS[kind]
    blocks = _random_blocks(kind, int(np.prod(shape)) // layout.n_weights, rng)
    _set_scale(kind, blocks, spread / _unit_spread(kind))
    return blocks


def _random_blocks(kind: Type, count: int, rng: np.random.Generator) -> U8:
    """Blocks whose own scale is still to be set; the scales of their groups lie in the upper half of their range, and
    minima are equal to scales."""
    n_bytes = count * LAYOUTS[kind].n_bytes
    words = rng.integers(0, 1 << 64, -(-n_bytes // 8), np.uint64)
    blocks = words.view(np.uint8)[:n_bytes].reshape(count, -1)
    if kind in (Type.Q4_K, Type.Q5_K):
        blocks[:, 4:8] |= np.uint8(0b10100000)  # bit 5 of the first four scales and of the last four
        blocks[:, 8:12] = blocks[:, 4:8]
        blocks[:, 12:16] = (blocks[:, 12:16] & np.uint8(15)) * np.uint8(17)
    elif kind == Type.Q2_K:
        blocks[:, :16] = (blocks[:, :16] & np.uint8(15) | np.uint8(8)) * np.uint8(17)
    return blocks


def _set_scale(kind: Type, blocks: U8, scale: float) -> None:
    """Where there is no minimum every other scale or so is negative, as the lowest step has no positive twin."""
    where = _SCALES[kind]
    signs = blocks[:, where.at + 1] & np.uint8(0x80)
    blocks[:, where.at : where.at + 2] = _half(scale)
    if where.least_at is None:
        blocks[:, where.at + 1] |= signs
    else:
        blocks[:, where.least_at : where.least_at + 2] = _half(where.ratio * scale)


def _half(value: float) -> U8:
    return np.array([value], "<f2").view(np.uint8)


@cache
def _unit_spread(kind: Type) -> float:
    """Standard deviation of the weights of blocks of scale 1."""
    blocks = _random_blocks(kind, _SAMPLE, np.random.default_rng(0))
    _set_scale(kind, blocks, 1.0)
    return float(np.std(dequantize(blocks, kind), dtype=np.float64))
