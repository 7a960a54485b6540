"""Where our answers are meant to be other than llama-server's, each with the reason."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Allowed:
    """`kind` and `path` as in `compare.Difference`; `exchanges` and `path` are patterns as of file names."""

    exchanges: str
    kind: str
    path: str
    reason: str


ALLOWED: tuple[Allowed, ...] = ()

PENDING: Mapping[str, str] = {}
