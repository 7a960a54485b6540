"""A sequence's tokens and state in a file.

Layout: 8 bytes of magic; version and length of the header (uint32, little-endian); the header in JSON (the model's
fingerprint, how many arrays make a page, and dtype and shape of each array: pages, then recurrent state); the tokens
(int32); the arrays; the SHA-256 of all that.
"""

import hashlib
import json
import os
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from pascal_engine.backend.protocol import HostArray
from pascal_engine.errors import StateFileError
from pascal_engine.memory.checkpoints import Snapshot, n_pages
from pascal_engine.memory.prefix_cache import Tokens

MAGIC = b"PASCALST"
VERSION = 1
_PREFIX = struct.Struct("<8sII")
_DIGEST_BYTES = 32


def write_state(path: Path, fingerprint: str, tokens: Tokens, snapshot: Snapshot) -> None:
    """Writes the file in one go: either it is there whole, or what was there before still is.

    Raises `StateFileError` where it cannot be written.
    """
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            temporary = Path(file.name)
            try:
                digest = hashlib.sha256()
                for part in _parts(fingerprint, tokens, snapshot):
                    digest.update(part)
                    file.write(part)
                file.write(digest.digest())
                file.flush()
                os.fsync(file.fileno())
                temporary.replace(path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise StateFileError(f"{path} cannot be written ({error.strerror}); choose another path.") from error


def _parts(fingerprint: str, tokens: Tokens, snapshot: Snapshot) -> Iterator[bytes]:
    arrays = [*(array for page in snapshot.kept_pages for array in page), *snapshot.kept_recurrent]
    header = json.dumps(
        {
            "fingerprint": fingerprint,
            "n_tokens": snapshot.n_tokens,
            "per_page": len(snapshot.kept_pages[0]),
            "arrays": [[array.dtype.str, list(array.shape)] for array in arrays],
        }
    ).encode()
    yield _PREFIX.pack(MAGIC, VERSION, len(header))
    yield header
    yield tokens.astype("<i4").tobytes()
    for array in arrays:
        yield array.tobytes()


def read_state(path: Path, fingerprint: str) -> tuple[Tokens, Snapshot]:
    """Reads what `write_state` wrote. Raises `StateFileError` where it is missing, damaged, or another model's."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise StateFileError(f"{path} cannot be read ({error.strerror}); check the path.") from error
    if len(raw) < _PREFIX.size + _DIGEST_BYTES or raw[: len(MAGIC)] != MAGIC:
        raise StateFileError(f"{path} is no saved slot; choose a file that this engine saved.")
    _, version, n_header = _PREFIX.unpack_from(raw)
    if version != VERSION:
        raise StateFileError(f"{path} has version {version}, and this engine reads {VERSION}; save the slot anew.")
    if hashlib.sha256(memoryview(raw)[:-_DIGEST_BYTES]).digest() != raw[-_DIGEST_BYTES:]:
        raise StateFileError(f"{path} is damaged; save the slot anew.")
    header = json.loads(raw[_PREFIX.size : _PREFIX.size + n_header])
    if header["fingerprint"] != fingerprint:
        raise StateFileError(
            f"{path} was saved with another model or other types of keys and values; load that one, or save anew."
        )
    return _content(memoryview(raw)[_PREFIX.size + n_header : -_DIGEST_BYTES], header)


def _content(body: memoryview, header: dict[str, Any]) -> tuple[Tokens, Snapshot]:
    n_tokens, per_page = header["n_tokens"], header["per_page"]
    tokens = np.frombuffer(body[: 4 * n_tokens], "<i4").astype(np.int32)
    arrays = list(_arrays(body[4 * n_tokens :], header["arrays"]))
    n_kv = n_pages(n_tokens) * per_page
    pages = tuple(tuple(arrays[page * per_page : (page + 1) * per_page]) for page in range(n_pages(n_tokens)))
    return tokens, Snapshot(n_tokens, pages, tuple(arrays[n_kv:]))


def _arrays(body: memoryview, shapes: list[tuple[str, list[int]]]) -> Iterator[HostArray]:
    at = 0
    for dtype, shape in shapes:
        n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        yield np.frombuffer(body[at : at + n_bytes], dtype).reshape(shape).copy()
        at += n_bytes


def fingerprint_of(path: Path, *settings: object) -> str:
    """What tells a model's file from any other without reading all of it: its size, its beginning, where the metadata
    lie, and samples of its weights; and the settings that the form of the state depends on."""
    digest = hashlib.sha256(repr(settings).encode())
    size = path.stat().st_size
    digest.update(struct.pack("<Q", size))
    with path.open("rb") as file:
        digest.update(file.read(1 << 20))
        for part in range(64):
            file.seek(size * part // 64)
            digest.update(file.read(4096))
    return digest.hexdigest()
