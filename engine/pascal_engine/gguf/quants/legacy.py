"""Blocks of 32 weights with one scale: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0.

In a block of 4 bits the low halves of all bytes come first, then the high ones; the fifth bits lie apart, one a weight.
"""

import numpy as np

from pascal_engine.gguf.quants.bits import F32, U8, centred, half, unpack


def q4_0(blocks: U8) -> F32:
    """d f16 | 16 bytes of 4 bits: d (q - 8)."""
    return half(blocks, 0) * centred(unpack(blocks[:, 2:], 4, 16), 8)


def q4_1(blocks: U8) -> F32:
    """d f16 | m f16 | 16 bytes of 4 bits: d q + m."""
    return half(blocks, 0) * unpack(blocks[:, 4:], 4, 16).astype(np.float32) + half(blocks, 2)


def q5_0(blocks: U8) -> F32:
    """d f16 | 4 bytes of fifth bits | 16 bytes of 4 bits: d (q - 16)."""
    return half(blocks, 0) * centred(_five_bits(blocks[:, 2:6], blocks[:, 6:]), 16)


def q5_1(blocks: U8) -> F32:
    """d f16 | m f16 | 4 bytes of fifth bits | 16 bytes of 4 bits: d q + m."""
    return half(blocks, 0) * _five_bits(blocks[:, 4:8], blocks[:, 8:]).astype(np.float32) + half(blocks, 2)


def q8_0(blocks: U8) -> F32:
    """d f16 | 32 int8: d q."""
    return half(blocks, 0) * blocks[:, 2:].view(np.int8).astype(np.float32)


def _five_bits(high: U8, low: U8) -> U8:
    return unpack(low, 4, 16) | unpack(high, 1, 1) << np.uint8(4)
