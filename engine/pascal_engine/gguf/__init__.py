"""The model file: key-value metadata and weights."""

from pascal_engine.gguf.file import SUPPORTED_TYPES, ModelFile
from pascal_engine.gguf.header import TensorInfo
from pascal_engine.gguf.rows import Rows

__all__ = ["SUPPORTED_TYPES", "ModelFile", "Rows", "TensorInfo"]
