"""Model files of real shapes and random weights, for measuring speed."""

from pascal_engine.synth.shapes import SHAPES, Experts, Shape
from pascal_engine.synth.tensors import TYPE_NAMES, tensors
from pascal_engine.synth.writer import write_model

__all__ = ["SHAPES", "TYPE_NAMES", "Experts", "Shape", "tensors", "write_model"]
