"""The head of a GGUF file: metadata and where each tensor lies, read without trusting a single number in it."""

import math
import struct
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from gguf import GGMLQuantizationType

from pascal_engine.gguf.quants import LAYOUTS

Value: TypeAlias = "int | float | bool | str | list[Value] | npt.NDArray[np.generic]"

_VERSIONS = (2, 3)
_SCALARS = dict(enumerate(("<B", "<b", "<H", "<h", "<I", "<i", "<f", "<?"))) | {10: "<Q", 11: "<q", 12: "<d"}
_STRING, _ARRAY = 8, 9
_MOST_DIMENSIONS = 4
_DEEPEST = 3
# Vocabularies have up to a few hundred thousand tokens, twice as many merges, and templates of some tens of KB.
_MOST_ITEMS = 1 << 22
_LONGEST_TEXT = 1 << 24
_FEWEST_BYTES_A_KEY, _FEWEST_BYTES_A_TENSOR = 13, 32


class HeaderError(Exception):
    """What is wrong with the file; `advice` says what to do about it."""

    def __init__(self, fault: str, advice: str = "download it again") -> None:
        super().__init__(fault)
        self.advice = advice


@dataclass(frozen=True)
class TensorInfo:
    """One tensor: `shape` in NumPy order (last axis = input), `data` uint8 [bytes], a view of the file."""

    name: str
    type: GGMLQuantizationType
    shape: tuple[int, ...]
    data: npt.NDArray[np.uint8]

    @property
    def n_elements(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class Header:
    """Metadata and tensors of one file; `raw` has each value as it lies there, its type first."""

    version: int
    metadata: dict[str, Value]
    raw: dict[str, memoryview]
    tensors: dict[str, TensorInfo]


def read_header(content: npt.NDArray[np.uint8]) -> Header:
    """The header of a whole file's bytes, uint8 [size]; the views in it keep `content` alive. A file that contradicts
    itself or reaches beyond its end is a `HeaderError`; nothing is allocated that the file does not hold."""
    return _Parser(content).header()


class _Parser:
    """Goes through the bytes once."""

    def __init__(self, content: npt.NDArray[np.uint8]) -> None:
        self._content = content
        self._view = content.data
        self._at = 0
        self._items_left = _MOST_ITEMS

    def header(self) -> Header:
        if self._take(4).tobytes() != b"GGUF":
            raise HeaderError("this is not a GGUF file (it does not begin with 'GGUF')", "choose a GGUF file")
        version = self._number("<I")
        if version & 0xFFFF == 0:
            raise HeaderError("its numbers are big-endian", "convert the model anew on a common machine")
        if version not in _VERSIONS:
            raise HeaderError(f"GGUF version {version} is not supported", "choose a file of version 2 or 3")
        n_tensors = self._count(_FEWEST_BYTES_A_TENSOR)
        n_keys = self._count(_FEWEST_BYTES_A_KEY)
        metadata, raw = self._metadata(n_keys)
        return Header(version, metadata, raw, self._tensors(n_tensors, _alignment(metadata)))

    def _take(self, n_bytes: int) -> memoryview:
        end = self._at + n_bytes
        if end > len(self._view):
            raise HeaderError("the file is damaged or cut short")
        taken = self._view[self._at : end]
        self._at = end
        return taken

    def _number(self, form: str) -> int:
        return int(struct.unpack(form, self._take(struct.calcsize(form)))[0])

    def _count(self, fewest_bytes: int) -> int:
        """A count of things that take at least so many bytes each, all of which must be in the file."""
        count = self._number("<Q")
        if count * fewest_bytes > len(self._view) - self._at:
            raise HeaderError("the file is damaged or cut short")
        return count

    def _text(self, key: str) -> str:
        n_bytes = self._count(1)
        if n_bytes > _LONGEST_TEXT:
            raise HeaderError(f"{key} is damaged")
        try:
            return str(self._take(n_bytes), "utf-8")
        except UnicodeDecodeError as error:
            raise HeaderError(f"{key} is damaged") from error

    def _metadata(self, count: int) -> tuple[dict[str, Value], dict[str, memoryview]]:
        metadata: dict[str, Value] = {}
        raw: dict[str, memoryview] = {}
        for _ in range(count):
            key = self._text("the name of a key")
            if key in metadata:
                raise HeaderError(f"the file is damaged (key {_short(key)} is there twice)")
            begin = self._at
            metadata[key] = self._value(self._number("<I"), f"key {_short(key)}", 0)
            raw[key] = self._view[begin : self._at]
        return metadata, raw

    def _value(self, kind: int, key: str, depth: int) -> Value:
        if kind == _STRING:
            return self._text(key)
        if kind == _ARRAY:
            return self._array(key, depth + 1)
        form = _SCALARS.get(kind)
        if form is None:
            raise HeaderError(f"{key} is damaged")
        value: int | float | bool = struct.unpack(form, self._take(struct.calcsize(form)))[0]
        return value

    def _array(self, key: str, depth: int) -> Value:
        """Numbers stay where they are until they are asked for."""
        kind = self._number("<I")
        form = _SCALARS.get(kind)
        count = self._count(8 if form is None else struct.calcsize(form))
        self._items_left -= count
        if self._items_left < 0 or depth > _DEEPEST:
            raise HeaderError(f"{key} is damaged")
        if form is not None:
            return np.frombuffer(self._take(count * struct.calcsize(form)), form)
        return [self._value(kind, key, depth) for _ in range(count)]

    def _tensors(self, count: int, alignment: int) -> dict[str, TensorInfo]:
        places: dict[str, tuple[GGMLQuantizationType, tuple[int, ...], int]] = {}
        for _ in range(count):
            name = self._text("the name of a tensor")
            if name in places:
                raise HeaderError(f"the file is damaged (tensor {_short(name)} is there twice)")
            shape = self._shape(name)
            places[name] = (_type(name, self._number("<I")), shape, self._number("<Q"))
        start = end = _padded(self._at, alignment)
        tensors = {}
        for name, (kind, shape, offset) in places.items():
            if start + offset != end:
                raise HeaderError(f"the file is damaged (tensor {_short(name)} does not follow the one before it)")
            tensors[name] = TensorInfo(name, kind, shape, self._data(name, kind, shape, end))
            end = _padded(end + tensors[name].data.nbytes, alignment)
        return tensors

    def _shape(self, name: str) -> tuple[int, ...]:
        """Sizes from the last axis to the first in the file, so turned round."""
        n_dimensions = self._number("<I")
        if not 1 <= n_dimensions <= _MOST_DIMENSIONS:
            raise HeaderError(f"the file is damaged (tensor {_short(name)} has {n_dimensions} dimensions)")
        shape = struct.unpack(f"<{n_dimensions}Q", self._take(8 * n_dimensions))[::-1]
        if 0 in shape:
            raise HeaderError(f"the file is damaged (tensor {_short(name)} is empty)")
        return shape

    def _data(self, name: str, kind: GGMLQuantizationType, shape: tuple[int, ...], at: int) -> npt.NDArray[np.uint8]:
        layout = LAYOUTS[kind]
        if shape[-1] % layout.n_weights:
            raise HeaderError(f"the file is damaged (rows of tensor {_short(name)} are no whole {kind.name} blocks)")
        n_bytes = math.prod(shape[:-1]) * layout.row_bytes(shape[-1])
        if at + n_bytes > len(self._content):
            raise HeaderError("the file is damaged or cut short")
        return self._content[at : at + n_bytes]


def _short(name: str) -> str:
    """A name of the file's as an error may show it."""
    return name if len(name) <= 64 else f"{name[:64]}..."


def _padded(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


def _alignment(metadata: dict[str, Value]) -> int:
    alignment = metadata.get("general.alignment", 32)
    if type(alignment) is not int or alignment < 1 or alignment & (alignment - 1):
        raise HeaderError("key general.alignment is damaged")
    return alignment


def _type(name: str, number: int) -> GGMLQuantizationType:
    supported = f"choose a file with types among {', '.join(kind.name for kind in LAYOUTS)}"
    try:
        kind = GGMLQuantizationType(number)
    except ValueError as error:
        fault = f"it holds weights of an unknown type (number {number})"
        raise HeaderError(fault, "choose a Q4_K_M or Q8_0 file") from error
    if kind not in LAYOUTS:
        raise HeaderError(f"tensor {_short(name)} is of type {kind.name}, which is not supported", supported)
    return kind
