"""An upstream over HTTP. It uses httpx's transport, beneath the client that would add headers of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from decomp_router.execute.upstream import UpstreamError, UpstreamRequest, UpstreamResponse


class HttpxUpstream:
    """An engine at an address such as http://127.0.0.1:8080."""

    def __init__(self, transport: httpx.AsyncBaseTransport, address: str, timeout: httpx.Timeout) -> None:
        self._transport, self._timeout = transport, timeout
        self._base = httpx.URL(address)

    @asynccontextmanager
    async def stream(self, request: UpstreamRequest) -> AsyncIterator[UpstreamResponse]:
        """Sends a request; leaving the context closes its connection if the answer is not complete."""
        try:
            response = await self._transport.handle_async_request(self._built(request))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise UpstreamError(self._sentence(error)) from error
        try:
            yield UpstreamResponse(response.status_code, tuple(response.headers.raw), self._chunks(response))
        finally:
            await response.aclose()

    def _built(self, request: UpstreamRequest) -> httpx.Request:
        path = self._base.raw_path.rstrip(b"/") + request.target
        return httpx.Request(
            request.method,
            self._base.copy_with(raw_path=path),
            headers=list(request.headers),
            content=request.body,
            # The target as it came: an URL object would tidy its path and query.
            extensions={"timeout": self._timeout.as_dict(), "target": path},
        )

    async def _chunks(self, response: httpx.Response) -> AsyncIterator[bytes]:
        try:
            async for chunk in response.aiter_raw():
                yield chunk
        except httpx.HTTPError as error:
            raise UpstreamError(self._sentence(error)) from error

    def _sentence(self, error: Exception) -> str:
        match error:
            case httpx.ConnectTimeout():
                return f"The upstream {self._base} did not accept a connection within {self._timeout.connect:g} s."
            case httpx.TimeoutException():
                return f"The upstream {self._base} stayed silent for {self._timeout.read:g} s."
            case httpx.ConnectError():
                return f"The upstream {self._base} cannot be reached; is the engine running?"
        return f"The upstream {self._base} broke off: {str(error) or type(error).__name__}."
