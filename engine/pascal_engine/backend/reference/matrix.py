"""Weights decoded to float32, and activations in the format that each type of weight is multiplied by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

from pascal_engine.backend.reference.gemm import PinnedGemm
from pascal_engine.gguf.rows import Rows

F32 = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Part:
    """Weights [outputs, inputs] or [experts, outputs, inputs] for activations in blocks of `block`, 1 for float32."""

    block: int
    weights: F32


@dataclass(frozen=True)
class Matrix:
    """A weight whose outputs are those of its parts, one behind the other."""

    gemm: PinnedGemm
    parts: tuple[Part, ...]

    @classmethod
    def of(cls, rows: Sequence[Rows], gemm: PinnedGemm) -> Matrix:
        """Decodes `rows`; neighbours of one activation format become one part."""
        parts = []
        for block, group in groupby(rows, lambda part: activation_block(part.type)):
            parts.append(Part(block, np.concatenate([part.decoded() for part in group], axis=-2)))
            gemm.register(parts[-1].weights)
        return cls(gemm, tuple(parts))

    @property
    def weights(self) -> F32:
        """All weights [outputs, inputs] as float32; a table of embeddings has but one part, and is not copied."""
        return self.parts[0].weights if len(self.parts) == 1 else np.concatenate([part.weights for part in self.parts])

    def expert(self, index: int) -> Matrix:
        """One matrix of a stack."""
        return Matrix(self.gemm, tuple(Part(part.block, part.weights[index]) for part in self.parts))

    def rows(self, x: F32) -> F32:
        """[m, inputs] to [m, outputs], see `PinnedGemm.rows`."""
        return np.concatenate([self.gemm.rows(rounded(x, part.block), part.weights) for part in self.parts], axis=-1)

    def blocks(self, x: F32) -> F32:
        """[n, T, inputs] to [n, T, outputs], see `PinnedGemm.blocks`."""
        return np.concatenate([self.gemm.blocks(rounded(x, part.block), part.weights) for part in self.parts], axis=-1)


def activation_block(kind: GGMLQuantizationType) -> int:
    """Activations that share a scale where they meet weights of this type: 1 (float32 as they are), 32 or 256."""
    return int(GGML_QUANT_SIZES[kind][0])


def rounded(x: F32, block: int) -> F32:
    """x [..., inputs] as int8 times a scale for each `block` of inputs, decoded to float32; see `backend.protocol`."""
    if block == 1:
        return x
    blocks = x.reshape(*x.shape[:-1], -1, block)
    most = np.abs(blocks).max(axis=-1, keepdims=True)
    some = ~(most < np.float32(1e-30))
    inverse = np.where(some, np.float32(127) / np.where(some, most, np.float32(1)), np.float32(0))
    scale = np.where(some, most / np.float32(127), np.float32(0))
    decoded: F32 = np.rint(blocks * inverse) * (shortened(scale) if block == 32 else scale)
    return decoded.reshape(x.shape)


def shortened(x: F32) -> F32:
    """x >= 0 rounded to the 11 significant bits of a float16, half to even."""
    bits = np.ascontiguousarray(x).view(np.uint32)
    short = (bits + np.uint32(0xFFF) + (bits >> np.uint32(13) & np.uint32(1))) & ~np.uint32(0x1FFF)
    return np.where(np.isnan(x), x, short.view(np.float32))
