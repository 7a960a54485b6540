"""The parts of a model: one file, or the pieces that llama.cpp's gguf-split cuts a large one into."""

import mmap
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pascal_engine.errors import ModelError
from pascal_engine.gguf.header import Header, HeaderError, TensorInfo, Value, read_header

_NAME = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf")
_MOST_PARTS = 1000


@dataclass(frozen=True)
class Part:
    """One file, mapped into memory."""

    path: Path
    header: Header

    @classmethod
    def open(cls, path: Path) -> "Part":
        """Whatever is wrong with the file is a `ModelError`."""
        if path.is_dir():
            raise ModelError(f"{path} is a folder; give the path of a GGUF file.")
        if not path.is_file():
            raise ModelError(f"{path}: there is no such file; give the path of a GGUF file.")
        try:
            with path.open("rb") as stream:
                empty = stream.read(1) == b""  # which cannot be mapped
                mapped = b"" if empty else mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
            content = np.frombuffer(mapped, np.uint8)
            return cls(path, read_header(content))
        except OSError as error:
            raise ModelError(f"{path}: the file cannot be read ({error.strerror}); check its permissions.") from error
        except HeaderError as error:
            raise ModelError(f"{path}: {error}; {error.advice}.") from error

    def number(self, key: str) -> int:
        """A whole number in the metadata; 0 where there is none."""
        value = self.header.metadata.get(key)
        return value if type(value) is int else 0


@dataclass(frozen=True)
class Parts:
    """All files of one model, in order; the metadata are those of the first."""

    files: tuple[Part, ...]

    @classmethod
    def open(cls, path: Path) -> "Parts":
        """The parts of the model that `path` is, or is a part of; parts that are missing or belong to another model
        are a `ModelError`."""
        given = Part.open(path)
        count = given.number("split.count")
        if count <= 1:
            return cls((given,))
        parts = cls(tuple(given if name == path else Part.open(name) for name in _names(path, count)))
        parts._check(count)
        return parts

    @property
    def metadata(self) -> dict[str, Value]:
        return self.files[0].header.metadata

    @property
    def tensors(self) -> dict[str, TensorInfo]:
        return {name: tensor for part in self.files for name, tensor in part.header.tensors.items()}

    def _check(self, count: int) -> None:
        n_tensors = self.files[0].number("split.tensors.count")
        for number, part in enumerate(self.files):
            found = part.number("split.no"), part.number("split.count"), part.number("split.tensors.count")
            if found != (number, count, n_tensors):
                raise ModelError(f"{part.path}: it is no part of the same model as the files beside it; {_AGAIN}.")
        if len(self.tensors) != n_tensors or sum(len(part.header.tensors) for part in self.files) != n_tensors:
            raise ModelError(f"{self.files[0].path}: its {count} parts do not fit together; {_AGAIN}.")


_AGAIN = "download all parts again, into one folder"


def _names(path: Path, count: int) -> list[Path]:
    """Paths of all parts, which must be there."""
    match = _NAME.fullmatch(path.name)
    if match is None or int(match["count"]) != count or count > _MOST_PARTS:
        raise ModelError(
            f"{path}: it is one of {count} parts, and its name must end as it did when it was split, with"
            f" -00001-of-{count:05}.gguf for the first; rename it."
        )
    names = [path.with_name(f"{match['stem']}-{number:05}-of-{count:05}.gguf") for number in range(1, count + 1)]
    missing = [name.name for name in names if not name.is_file()]
    if missing:
        shown = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
        raise ModelError(f"{path}: {len(missing)} of its {count} parts are missing ({shown}); download them beside it.")
    return names
