"""The shipped case sets: held-out prompts in six languages and adversarial ones, never trained on."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from pathlib import Path

FOLDER = Path(str(files("decomp_gauntlet") / "sets"))
HASHES = FOLDER / "SHA256SUMS"


def shipped() -> list[Path]:
    """The files, in the order of SHA256SUMS."""
    return [FOLDER / name for name in stated_hashes()]


def stated_hashes() -> dict[str, str]:
    """File name to the SHA-256 it was frozen with."""
    lines = (line.split(maxsplit=1) for line in HASHES.read_text(encoding="utf-8").splitlines())
    return {name: digest for digest, name in lines}


def digest(path: Path) -> str:
    """SHA-256 of a file, hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
