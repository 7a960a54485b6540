"""What all block formats are made of: little-endian halves, and small unsigned fields packed into bytes."""

import numpy as np
import numpy.typing as npt

U8 = npt.NDArray[np.uint8]
F32 = npt.NDArray[np.float32]


def half(blocks: U8, at: int) -> F32:
    """float32 [n, 1]: the float16 at byte `at` of each block, uint8 [n, bytes]."""
    return blocks[:, at : at + 2].view("<f2").astype(np.float32)


def unpack(packed: U8, bits: int, run: int) -> U8:
    """uint8 [n, 8 / bits * bytes] from uint8 [n, bytes]: each run of `run` bytes holds first the lowest `bits` bits of
    all its bytes, then the next ones."""
    n_blocks = len(packed)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)[:, None]
    fields = packed.reshape(n_blocks, -1, 1, run) >> shifts
    return (fields & np.uint8((1 << bits) - 1)).reshape(n_blocks, -1)


def centred(values: U8, zero: int) -> F32:
    """float32: unsigned `values` less `zero`, the one that stands for 0."""
    return (values.view(np.int8) - np.int8(zero)).astype(np.float32)
