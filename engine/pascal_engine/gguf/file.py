"""A model's GGUF files, opened and checked: typed metadata, and tensors decoded or as they lie in the file."""

from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from pascal_engine.errors import ModelError
from pascal_engine.gguf.header import TensorInfo
from pascal_engine.gguf.parts import Parts
from pascal_engine.gguf.quants import LAYOUTS
from pascal_engine.gguf.rows import Rows

F32 = npt.NDArray[np.float32]
T = TypeVar("T")

SUPPORTED_TYPES = frozenset(LAYOUTS)


class ModelFile:
    """Read-only view of a model's files, mapped into memory; every failure is a `ModelError`. Any part of a split model
    opens the whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        parts = Parts.open(path)
        self._metadata, self._tensors = parts.metadata, parts.tensors
        self._unread = set(self._tensors)

    @property
    def architecture(self) -> str:
        return self.require("general.architecture", str)

    @property
    def name(self) -> str:
        return self.get("general.name", str) or self.path.stem

    @property
    def size_bytes(self) -> int:
        return sum(tensor.data.nbytes for tensor in self._tensors.values())

    @property
    def n_parameters(self) -> int:
        return sum(tensor.n_elements for tensor in self._tensors.values())

    @property
    def tensors(self) -> tuple[TensorInfo, ...]:
        """All tensors, in the order of the file."""
        return tuple(self._tensors.values())

    def get(self, key: str, kind: type[T]) -> T | None:
        """The value of a metadata key as `kind` (str, int, float, bool, list), or None where it is absent."""
        if key not in self._metadata:
            return None
        value = _plain(self._metadata[key])
        if kind is float and type(value) is int:
            value = float(value)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise ModelError(f"{self.path}: key {key} is not of type {kind.__name__}; convert the model anew.")
        return value

    def require(self, key: str, kind: type[T]) -> T:
        """As `get`, but an absent key is an error."""
        value = self.get(key, kind)
        if value is None:
            raise ModelError(f"{self.path}: the key {key} is missing; convert the model anew with llama.cpp.")
        return value

    def strings(self, key: str) -> list[str]:
        """A required list of texts."""
        values = self.require(key, list)
        if not all(isinstance(value, str) for value in values):
            raise ModelError(f"{self.path}: key {key} is not a list of texts; convert the model anew.")
        return values

    def has(self, name: str) -> bool:
        return name in self._tensors

    def rows(self, name: str, *shape: int) -> Rows:
        """Tensor `name` as it lies in the file, never copied: a view of the mapped file. `shape` is in NumPy order
        (last axis = input) and has two axes or more; the tensor must have it, but for leading axes of size one."""
        tensor = self._checked(name, shape)
        return Rows(tensor.type, shape[-1], tensor.data.reshape(*shape[:-1], -1))

    def tensor(self, name: str, *shape: int) -> F32:
        """Tensor `name`, decoded to float32; `shape` as in `rows`, of any number of axes."""
        tensor = self._checked(name, shape)
        return Rows(tensor.type, shape[-1], tensor.data.reshape(1, -1)).decoded().reshape(shape)

    def unread(self, *ignored_prefixes: str) -> list[str]:
        """Names of the tensors nobody asked for, without those that begin with one of `ignored_prefixes`."""
        return sorted(name for name in self._unread if not name.startswith(ignored_prefixes))

    def _checked(self, name: str, shape: tuple[int, ...]) -> TensorInfo:
        tensor = self._tensors.get(name)
        if tensor is None:
            raise ModelError(f"{self.path}: the tensor {name} is missing; convert the model anew with llama.cpp.")
        self._unread.discard(name)
        if _significant(tensor.shape) != _significant(shape):
            raise ModelError(f"{self.path}: tensor {name} has shape {tensor.shape}, its metadata promise {shape}.")
        return tensor


def _plain(value: object) -> object:
    """A metadata value without NumPy."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _significant(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape without leading ones, which converters write or leave out at will."""
    return _significant(shape[1:]) if len(shape) > 1 and shape[0] == 1 else shape
