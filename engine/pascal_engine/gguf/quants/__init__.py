"""Number formats of weights: their blocks, their code books and what they decode to."""

from pascal_engine.gguf.quants.decode import LAYOUTS, Layout, dequantize
from pascal_engine.gguf.quants.tables import GRIDS, IQ4_VALUES, SIGNS

__all__ = ["GRIDS", "IQ4_VALUES", "LAYOUTS", "SIGNS", "Layout", "dequantize"]
