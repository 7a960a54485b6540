"""A GGUF file, opened and checked: typed metadata and tensors decoded to float32."""

import re
import struct
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from gguf import GGMLQuantizationType, GGUFReader, ReaderTensor
from gguf.quants import dequantize

from pascal_engine.errors import ModelError
from pascal_engine.gguf.rows import Rows

F32 = npt.NDArray[np.float32]
T = TypeVar("T")

_TYPES = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K")
SUPPORTED_TYPES = frozenset(GGMLQuantizationType[name] for name in _TYPES)


class ModelFile:
    """Read-only view of one GGUF file; every failure is a `ModelError`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._reader = _open(path)
        self._tensors: dict[str, ReaderTensor] = {tensor.name: tensor for tensor in self._reader.tensors}
        self._unread = set(self._tensors)
        self._check_types()

    @property
    def architecture(self) -> str:
        return self.require("general.architecture", str)

    @property
    def name(self) -> str:
        return self.get("general.name", str) or self.path.stem

    @property
    def size_bytes(self) -> int:
        return sum(int(tensor.n_bytes) for tensor in self._tensors.values())

    @property
    def n_parameters(self) -> int:
        return sum(int(tensor.n_elements) for tensor in self._tensors.values())

    def get(self, key: str, kind: type[T]) -> T | None:
        """The value of a metadata key as `kind` (str, int, float, bool, list), or None where it is absent."""
        field = self._reader.fields.get(key)
        if field is None:
            return None
        try:
            value = field.contents()
        except ValueError as error:
            raise ModelError(f"{self.path}: key {key} is damaged; download the file again.") from error
        if kind is float and isinstance(value, int):
            value = float(value)
        if not isinstance(value, kind):
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

    def tensor(self, name: str, *shape: int) -> F32:
        """Tensor `name`, decoded to float32 in NumPy order (last axis = input); it must have `shape`, but for
        leading axes of size one."""
        tensor = self._checked(name, shape)
        return np.ascontiguousarray(dequantize(tensor.data, tensor.tensor_type), dtype=np.float32).reshape(shape)

    def rows(self, name: str, *shape: int) -> Rows:
        """Tensor `name` as it lies in the file, a view of it; shape and errors as for `tensor`."""
        tensor = self._checked(name, shape)
        data = np.asarray(tensor.data).reshape(-1).view(np.uint8).reshape(*shape[:-1], -1)
        return Rows(tensor.tensor_type, shape[-1], data)

    def _checked(self, name: str, shape: tuple[int, ...]) -> ReaderTensor:
        """The tensor, no longer unread; one that is missing or of another shape is an error."""
        tensor = self._tensors.get(name)
        if tensor is None:
            raise ModelError(f"{self.path}: the tensor {name} is missing; convert the model anew with llama.cpp.")
        self._unread.discard(name)
        found = tuple(int(size) for size in reversed(tensor.shape))
        if _significant(found) != _significant(shape):
            raise ModelError(f"{self.path}: tensor {name} has shape {found}, its metadata promise {shape}.")
        return tensor

    def unread(self, *ignored_prefixes: str) -> list[str]:
        """Names of the tensors nobody asked for, without those that begin with one of `ignored_prefixes`."""
        return sorted(name for name in self._unread if not name.startswith(ignored_prefixes))

    def _check_types(self) -> None:
        for tensor in self._tensors.values():
            if tensor.tensor_type not in SUPPORTED_TYPES:
                raise ModelError(
                    f"{self.path}: tensor {tensor.name} is of type {tensor.tensor_type.name}, which is not supported;"
                    f" choose a file with types among {', '.join(_TYPES)} (for example a Q4_K_M or Q8_0 file)."
                )


def _significant(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape without leading ones, which converters write or leave out at will."""
    return _significant(shape[1:]) if len(shape) > 1 and shape[0] == 1 else shape


def _open(path: Path) -> GGUFReader:
    if path.is_dir():
        raise ModelError(f"{path} is a folder; give the path of a GGUF file.")
    if not path.is_file():
        raise ModelError(f"{path}: there is no such file; give the path of a GGUF file.")
    try:
        with path.open("rb") as stream:
            magic = stream.read(4)
        if magic != b"GGUF":
            raise ModelError(f"{path}: this is not a GGUF file (it does not begin with 'GGUF').")
        return GGUFReader(path)
    except OSError as error:
        raise ModelError(f"{path}: the file cannot be read ({error.strerror}); check its permissions.") from error
    except (ValueError, IndexError, KeyError, TypeError, OverflowError, MemoryError, struct.error) as error:
        # The reader trusts the file, so damage shows as whatever error its first wrong number leads to.
        raise ModelError(_damage(path, str(error))) from error


def _damage(path: Path, detail: str) -> str:
    if "GGMLQuantizationType" in detail:
        number = re.findall(r"\d+", detail)[-1]
        return f"{path}: it holds weights of an unknown type (number {number}); choose a Q4_K_M or Q8_0 file."
    return f"{path}: the file is damaged or cut short; download it again."
