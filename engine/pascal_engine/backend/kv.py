"""Number formats of keys and values in pools that are NumPy arrays."""

from typing import Any

import numpy as np
import numpy.typing as npt
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize, quantize

from pascal_engine.backend.batch import BLOCK
from pascal_engine.backend.protocol import KvKind
from pascal_engine.errors import ModelError

F32 = npt.NDArray[np.float32]
Pool = npt.NDArray[Any]

_FLOATS: dict[KvKind, npt.DTypeLike] = {"f32": np.float32, "f16": np.float16}
_QUANTISED = {"q8_0": GGMLQuantizationType.Q8_0, "q4_0": GGMLQuantizationType.Q4_0}


def kv_pool(rows: int, pages: int, kv_heads: int, head_dim: int, kind: KvKind) -> Pool:
    """Zeros [rows, pages, kv_heads, BLOCK, head_dim]; in quantised kinds the last axis holds the bytes of a head's
    blocks, as GGUF files lay them out. Heads that are no whole number of blocks are a `ModelError`."""
    shape = (rows, pages, kv_heads, BLOCK)
    if kind in _FLOATS:
        return np.zeros((*shape, head_dim), _FLOATS[kind])
    per_block, n_bytes = GGML_QUANT_SIZES[_QUANTISED[kind]]
    if head_dim % per_block:
        raise ModelError(
            f"{kind} keys and values need heads of a multiple of {per_block} values, and the model's have {head_dim};"
            " choose f16 for --cache-type-k and --cache-type-v."
        )
    return np.zeros((*shape, head_dim // per_block * n_bytes), np.uint8)


def encoded(values: F32, pool: Pool) -> Pool:
    """Values [..., head_dim] in the format of `pool`; what is too large for half precision becomes infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        if pool.dtype == np.uint8:
            return np.asarray(quantize(np.ascontiguousarray(values), _kind(pool, values.shape[-1])))
        return np.asarray(values, pool.dtype)


def decoded(pool: Pool, head_dim: int) -> F32:
    """The values [..., head_dim] of a part of a pool, in float32."""
    if pool.dtype == np.uint8:
        return np.asarray(dequantize(np.ascontiguousarray(pool), _kind(pool, head_dim)), np.float32)
    return np.asarray(pool, np.float32)


def _kind(pool: Pool, head_dim: int) -> GGMLQuantizationType:
    for kind in _QUANTISED.values():
        per_block, n_bytes = GGML_QUANT_SIZES[kind]
        if pool.shape[-1] * per_block == head_dim * n_bytes:
            return kind
    raise AssertionError("a pool's last axis holds the blocks of one head")
