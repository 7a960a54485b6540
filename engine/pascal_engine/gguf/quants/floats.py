"""Formats without blocks: F32, F16, BF16."""

import numpy as np

from pascal_engine.gguf.quants.bits import F32, U8


def f32(blocks: U8) -> F32:
    return np.asarray(blocks.view("<f4"), np.float32)


def f16(blocks: U8) -> F32:
    return blocks.view("<f2").astype(np.float32)


def bf16(blocks: U8) -> F32:
    """The upper half of a float32."""
    return (blocks.view("<u2").astype(np.uint32) << np.uint32(16)).view(np.float32)
