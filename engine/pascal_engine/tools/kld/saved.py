"""Files of logits: the engine's own, all bits kept, and those of llama.cpp's `llama-perplexity --save-all-logits`."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pascal_engine.errors import ModelError
from pascal_engine.files import new_file
from pascal_engine.tools.kld.sources import F32, Chunks, Source
from pascal_engine.tools.progress import Report

_OURS, _PEERS = b"pascal-logits 1\n", b"_logits_"
_COUNTS = struct.Struct("<3I")
_PEERS_REACH = 16.0


@dataclass(frozen=True)
class SavedLogits:
    """A file of them, mapped into memory: after its name the counts of tokens a chunk, vocabulary and chunks in 32 bits
    each, the tokens in int32, and for each scored position `data`. Ours has float32 logits; llama.cpp's a float32 step,
    a float32 least, and 16 bits for each log-probability (least + bits * step)."""

    chunks: Chunks
    n_vocab: int
    reach: float
    data: npt.NDArray[Any]

    @classmethod
    def is_one(cls, path: Path) -> bool:
        """Whether the file begins as one of logits does."""
        return path.is_file() and _magic(path) is not None

    @classmethod
    def open(cls, path: Path) -> "SavedLogits":
        """A damaged file is a `ModelError`."""
        magic = _magic(path)
        assert magic is not None, "not a file of logits"
        try:
            content = np.memmap(path, np.uint8, "r")
            return cls._read(content[len(magic) :], magic)
        except (ValueError, struct.error) as error:
            raise ModelError(f"{path}: these logits are damaged or cut short; save them anew.") from error

    @classmethod
    def _read(cls, content: npt.NDArray[np.uint8], magic: bytes) -> "SavedLogits":
        n_ctx, n_vocab, n_chunks = _COUNTS.unpack(content[: _COUNTS.size].tobytes())
        at = _COUNTS.size + 4 * n_chunks * n_ctx
        chunks = Chunks(content[_COUNTS.size : at].view("<i4").reshape(n_chunks, n_ctx))
        if magic == _OURS:
            data = content[at:].view("<f4").reshape(n_chunks, chunks.n_scored, n_vocab)
            return cls(chunks, n_vocab, float("inf"), data)
        packed = content[at:].view("<u2").reshape(n_chunks, chunks.n_scored, 4 + (n_vocab + 1) // 2 * 2)
        return cls(chunks, n_vocab, _PEERS_REACH, packed)

    def logits(self, chunk: int) -> Iterator[F32]:
        for piece in self.chunks.pieces():
            rows = np.ascontiguousarray(self.data[chunk, piece])
            yield rows if rows.dtype == np.float32 else _unpacked(rows, self.n_vocab)


def save(source: Source, path: Path, report: Report) -> None:
    """Writes all logits of `source` to `path`, which must not exist; what prevents it is a `ModelError`."""
    chunks, n_chunks = source.chunks, len(source.chunks.tokens)
    n_bytes = 4 * (chunks.tokens.size + n_chunks * chunks.n_scored * source.n_vocab)
    with new_file(path, n_bytes) as partial, partial.open("wb") as stream:
        stream.write(_OURS + _COUNTS.pack(chunks.n_ctx, source.n_vocab, n_chunks))
        stream.write(chunks.tokens.astype("<i4").tobytes())
        for chunk in range(n_chunks):
            for piece in source.logits(chunk):
                stream.write(piece.astype("<f4").tobytes())
            report(chunk + 1, n_chunks)


def _magic(path: Path) -> bytes | None:
    try:
        with path.open("rb") as stream:
            begin = stream.read(len(_OURS))
    except OSError as error:
        raise ModelError(f"{path}: the file cannot be read ({error.strerror}); check its permissions.") from error
    return next((magic for magic in (_OURS, _PEERS) if begin.startswith(magic)), None)


def _unpacked(rows: npt.NDArray[np.uint16], n_vocab: int) -> F32:
    step, least = rows[:, :4].copy().view("<f4").T[..., None]
    unpacked: F32 = step * rows[:, 4 : 4 + n_vocab] + least
    return unpacked
