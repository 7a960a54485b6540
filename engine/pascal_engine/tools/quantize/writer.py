"""Writes a model's file anew with some of its tensors in other formats; whatever else it says is copied."""

import struct
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

from gguf import GGMLQuantizationType as Type
from gguf import GGUFValueType, LlamaFileType

from pascal_engine.errors import ModelError
from pascal_engine.files import new_file
from pascal_engine.gguf.parts import Parts
from pascal_engine.gguf.quants import LAYOUTS, dequantize
from pascal_engine.tools.progress import Report
from pascal_engine.tools.quantize.mix import Change
from pascal_engine.tools.quantize.quantisers import U8, quantiser

_ALIGNMENT = 32
_PIECE = 1 << 20
"""Weights that a thread takes at a time, and bytes that are copied at a time."""

# Formats that general.file_type has other names for.
_FILE_TYPES = {
    Type.F32: LlamaFileType.ALL_F32,
    Type.Q3_K: LlamaFileType.MOSTLY_Q3_K_M,
    Type.Q4_K: LlamaFileType.MOSTLY_Q4_K_M,
    Type.Q5_K: LlamaFileType.MOSTLY_Q5_K_M,
}


def write_quantised(source: Parts, out: Path, changes: list[Change], n_threads: int, report: Report) -> int:
    """Writes `out`, which must not exist, and returns its bytes; `report` counts bytes of tensors. `n_threads` pieces
    of a tensor are in memory at a time. What prevents it is a `ModelError`, and then nothing is left behind."""
    header = _header(source, changes)
    total = sum(change.n_bytes for change in changes)
    with (
        new_file(out, len(header) + total + _ALIGNMENT * len(changes)) as partial,
        partial.open("wb") as stream,
        ThreadPoolExecutor(n_threads) as threads,
    ):
        stream.write(header)
        done = 0
        for change in changes:
            for piece in _pieces(change, threads, n_threads):
                stream.write(piece)
                done += len(piece)
                report(done, total)
            _pad(stream)
    return out.stat().st_size


def file_type(changes: list[Change]) -> LlamaFileType:
    """What `general.file_type` says: the format of most weights."""
    sizes: Counter[Type] = Counter()
    for change in changes:
        sizes[change.type] += change.tensor.n_elements
    most = max(sizes, key=lambda kind: sizes[kind])
    return _FILE_TYPES[most] if most in _FILE_TYPES else LlamaFileType[f"MOSTLY_{most.name}"]


def _header(source: Parts, changes: list[Change]) -> bytes:
    """All that stands before the tensors' data. Keys keep their bytes, but for those that no longer hold."""
    raw = dict(source.files[0].header.raw)
    keys = {key: bytes(value) for key, value in raw.items() if not key.startswith("split.")}
    keys.pop("general.alignment", None)
    keys["general.quantization_version"] = _number(2)
    keys["general.file_type"] = _number(file_type(changes))
    parts = [b"GGUF", struct.pack("<IQQ", 3, len(changes), len(keys))]
    for key, value in keys.items():
        parts += [_text(key), value]
    offset = 0
    for change in changes:
        shape = change.tensor.shape[::-1]
        parts += [_text(change.tensor.name), struct.pack(f"<I{len(shape)}Q", len(shape), *shape)]
        parts.append(struct.pack("<IQ", change.type, offset))
        offset += -(-change.n_bytes // _ALIGNMENT) * _ALIGNMENT
    made = b"".join(parts)
    return made + bytes(-len(made) % _ALIGNMENT)


def _text(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def _number(value: int) -> bytes:
    return struct.pack("<II", GGUFValueType.UINT32, value)


def _pad(stream: BinaryIO) -> None:
    stream.write(bytes(-stream.tell() % _ALIGNMENT))


def _pieces(change: Change, threads: Executor, n_threads: int) -> Iterator[bytes]:
    """The tensor's data, in order."""
    tensor = change.tensor
    if change.type == tensor.type:
        for first in range(0, len(tensor.data), _PIECE):
            yield tensor.data[first : first + _PIECE].tobytes()
        return
    quantise, n_inputs = quantiser(change.type), tensor.shape[-1]
    rows = tensor.data.reshape(-1, LAYOUTS[tensor.type].row_bytes(n_inputs))

    def piece(some: U8) -> bytes:
        return quantise(dequantize(some, tensor.type)).tobytes()

    step = max(_PIECE // n_inputs, 1)
    try:
        for group in range(0, len(rows), step * n_threads):
            starts = range(group, min(group + step * n_threads, len(rows)), step)
            yield from threads.map(piece, [rows[first : first + step] for first in starts])
    except ValueError as error:
        raise ModelError(f"{tensor.name}: {error}; give it F32 in the mix, or convert the model anew.") from error
