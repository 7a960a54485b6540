"""Files that are whole or not there: written under another name, then renamed."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pascal_engine.errors import ModelError


@contextmanager
def new_file(path: Path, n_bytes: int) -> Iterator[Path]:
    """Gives the name to write to in place of `path`, and renames it at the end; after an exception nothing is left.

    A `path` that exists, is in no folder or has no room for `n_bytes` is a `ModelError`, and so is a failure to write.
    """
    _check(path, n_bytes)
    partial = path.with_name(f"{path.name}.partial")
    try:
        yield partial
        partial.replace(path)
    except OSError as error:
        raise ModelError(f"{path}: it cannot be written ({error.strerror}); choose another place.") from error
    finally:
        partial.unlink(missing_ok=True)


def _check(path: Path, n_bytes: int) -> None:
    if path.exists():
        raise ModelError(f"{path} exists; delete it or choose another name.")
    if not path.parent.is_dir():
        raise ModelError(f"{path.parent}: there is no such folder; make it first.")
    free = shutil.disk_usage(path.parent).free
    if n_bytes > free:
        raise ModelError(
            f"{path}: it takes {n_bytes / 1e9:.1f} GB, but {free / 1e9:.1f} GB are free there; choose another place."
        )
