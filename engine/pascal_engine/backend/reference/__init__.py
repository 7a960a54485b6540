"""The NumPy backend: the readable reference that other backends are held against."""

from pascal_engine.backend.reference.backend import ReferenceBackend

__all__ = ["ReferenceBackend"]
