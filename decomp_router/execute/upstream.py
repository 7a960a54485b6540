"""The seam to an engine: one HTTP request in, a streamed response out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

Headers = tuple[tuple[bytes, bytes], ...]


class UpstreamError(Exception):
    """The upstream could not be reached, or broke off; one clear sentence."""


@dataclass(frozen=True)
class UpstreamRequest:
    """What is sent; `target` is path and query as they stand on the request line."""

    method: str
    target: bytes
    headers: Headers
    body: bytes | AsyncIterator[bytes] | None = None


@dataclass(frozen=True)
class UpstreamResponse:
    """What comes back, the body as it arrives. Reading it may raise UpstreamError."""

    status: int
    headers: Headers
    chunks: AsyncIterator[bytes]


class Upstream(Protocol):
    """An engine, or whatever stands in front of it."""

    def stream(self, request: UpstreamRequest) -> AbstractAsyncContextManager[UpstreamResponse]:
        """Sends a request; leaving the context ends it upstream too. Entering may raise UpstreamError."""
        ...
