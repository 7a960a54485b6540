"""Blocks of 256 weights in groups with scales of their own: Q2_K, Q3_K, Q4_K, Q5_K, Q6_K."""

import numpy as np

from pascal_engine.gguf.quants.bits import F32, U8, centred, half, unpack


def q2_k(blocks: U8) -> F32:
    """16 scales (low half) and minima (high half) of 4 bits | 64 bytes of 2 bits | d f16 | dmin f16.
    Groups of 16: d scale q - dmin minimum."""
    scales = blocks[:, :16]
    values = unpack(blocks[:, 16:80], 2, 32)
    return _with_minima(half(blocks, 80), half(blocks, 82), scales & np.uint8(15), scales >> np.uint8(4), values)


def q3_k(blocks: U8) -> F32:
    """32 bytes of third bits | 64 bytes of 2 bits | 12 bytes of scales of 6 bits, less 32 | d f16.
    Groups of 16: d scale (q - 4)."""
    scales = unpack(blocks[:, 96:104], 4, 8) | unpack(blocks[:, 104:108], 2, 4) << np.uint8(4)
    values = unpack(blocks[:, 32:96], 2, 32) | unpack(blocks[:, :32], 1, 32) << np.uint8(2)
    return _grouped(half(blocks, 108), centred(scales, 32), centred(values, 4))


def q4_k(blocks: U8) -> F32:
    """d f16 | dmin f16 | 12 bytes of scales and minima of 6 bits | 128 bytes of 4 bits.
    Groups of 32: d scale q - dmin minimum."""
    return _with_minima(half(blocks, 0), half(blocks, 2), *k_scales(blocks[:, 4:16]), unpack(blocks[:, 16:], 4, 32))


def q5_k(blocks: U8) -> F32:
    """d f16 | dmin f16 | 12 bytes of scales and minima of 6 bits | 32 bytes of fifth bits | 128 bytes of 4 bits.
    Groups of 32: d scale q - dmin minimum."""
    values = unpack(blocks[:, 48:], 4, 32) | unpack(blocks[:, 16:48], 1, 32) << np.uint8(4)
    return _with_minima(half(blocks, 0), half(blocks, 2), *k_scales(blocks[:, 4:16]), values)


def q6_k(blocks: U8) -> F32:
    """128 bytes of 4 bits | 64 bytes of the two bits above | 16 int8 scales | d f16. Groups of 16: d scale (q - 32)."""
    values = unpack(blocks[:, :128], 4, 64) | unpack(blocks[:, 128:192], 2, 32) << np.uint8(4)
    scales = blocks[:, 192:208].view(np.int8).astype(np.float32)
    return _grouped(half(blocks, 208), scales, centred(values, 32))


def k_scales(packed: U8) -> tuple[U8, U8]:
    """Eight scales and eight minima of 6 bits, uint8 [n, 8] each, from uint8 [n, 12]: the first four of each in the low
    bits of bytes 0-3 and 4-7; of the last four the low halves in bytes 8-11, the rest in the high bits of bytes 0-7."""
    scale, least, mixed = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    low, high, top = np.uint8(63), np.uint8(48), np.uint8(2)
    scales = np.concatenate([scale & low, mixed & np.uint8(15) | scale >> top & high], axis=1)
    minima = np.concatenate([least & low, mixed >> np.uint8(4) | least >> top & high], axis=1)
    return scales, minima


def _with_minima(d: F32, dmin: F32, scales: U8, minima: U8, values: U8) -> F32:
    """d scale q - dmin minimum, the scales and minima [n, groups] rounded to float32 first."""
    n_blocks, n_groups = scales.shape
    step = (d * scales.astype(np.float32))[:, :, None]
    least = (dmin * minima.astype(np.float32))[:, :, None]
    return (step * values.reshape(n_blocks, n_groups, -1).astype(np.float32) - least).reshape(n_blocks, -1)


def _grouped(d: F32, scales: F32, values: F32) -> F32:
    """d scale q, d scale [n, groups] rounded to float32 first."""
    n_blocks, n_groups = scales.shape
    return ((d * scales)[:, :, None] * values.reshape(n_blocks, n_groups, -1)).reshape(n_blocks, -1)
