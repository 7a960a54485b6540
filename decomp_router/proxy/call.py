"""One request as it came, and the way back to its client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from starlette.types import Scope, Send

from decomp_router.execute.upstream import Headers, UpstreamRequest
from decomp_router.proxy.headers import for_new_body, onward


@dataclass(frozen=True)
class Call:
    """What a handler needs of a request: its head, its body (whole, in parts, or none), and where to answer."""

    scope: Scope
    body: bytes | AsyncIterator[bytes] | None
    send: Send

    @property
    def target(self) -> bytes:
        """Path and query as they stood on the request line."""
        path: bytes = self.scope.get("raw_path") or self.scope["path"].encode()
        query: bytes = self.scope["query_string"]
        return path + b"?" + query if query else path

    @property
    def headers(self) -> Headers:
        """The client's headers that suit a request of our own."""
        return for_new_body(self.scope["headers"])

    def untouched(self) -> UpstreamRequest:
        """The same request, for the upstream."""
        return UpstreamRequest(self.scope["method"], self.target, onward(self.scope["headers"]), self.body)

    def unencoded(self) -> UpstreamRequest:
        """The same request, to be answered without compression."""
        return UpstreamRequest(self.scope["method"], self.target, self.headers, self.body)
