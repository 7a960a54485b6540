"""The model file: key-value metadata and weights."""

from pascal_engine.gguf.file import ModelFile

__all__ = ["ModelFile"]
