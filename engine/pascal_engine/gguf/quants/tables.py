"""The code books of the IQ formats."""

import numpy as np
from gguf import GGMLQuantizationType, quants

from pascal_engine.gguf.quants.bits import U8

_CODE_BOOKS = ("IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S")


def _grid(name: str) -> U8:
    """The package keeps its code books packed, and unpacks one when the type is first used."""
    code_book = getattr(quants, name)
    code_book.init_grid()
    return np.ascontiguousarray(code_book.grid.reshape(code_book.grid_shape), np.uint8)


GRIDS = {GGMLQuantizationType[name]: _grid(name) for name in _CODE_BOOKS}
"""Magnitudes, uint8 [entries, 8] for IQ2 and [entries, 4] for IQ3."""

SIGNS: U8 = np.array([index | (index.bit_count() & 1) << 7 for index in range(128)], np.uint8)
"""uint8 [128]: eight sign bits from seven; the eighth makes their number even."""

IQ4_VALUES = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.int8)
"""int8 [16]: what the four bits of IQ4_NL and IQ4_XS stand for."""
