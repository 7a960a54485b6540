"""A streamed response of our own, opened with its first byte and kept alive while there is nothing to say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

from starlette.types import Send

from decomp_router.execute.sse import comment, frame
from decomp_router.execute.upstream import Headers
from decomp_router.proxy.replies import error

Sleep = Callable[[float], Awaitable[None]]

KEEP_ALIVE_S = 7.0
"""A comment follows after one to two of these without a word, so at most 15 seconds pass in silence."""


class EventStream:
    """Server-sent events to one client; safe to write to from several tasks."""

    def __init__(self, send: Send, headers: Headers, sleep: Sleep) -> None:
        self.opened = False
        self._send, self._headers, self._sleep = send, headers, sleep
        self._lock = asyncio.Lock()
        self._quiet = True

    async def write(self, data: bytes) -> None:
        """Sends whole events, and before the first of them the head of the response."""
        async with self._lock:
            if not self.opened:
                self.opened = True
                headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache"), *self._headers]
                await self._send({"type": "http.response.start", "status": 200, "headers": headers})
            self._quiet = False
            await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def write_error(self, message: str) -> None:
        """Tells the client that the answer breaks off here."""
        await self.write(frame(json.dumps(error(message, "upstream_error")).encode()))

    async def keep_alive(self) -> None:
        """Writes a comment whenever there has been nothing for a while; runs until cancelled."""
        while True:
            self._quiet = True
            await self._sleep(KEEP_ALIVE_S)
            if self._quiet:
                await self.write(comment("keep-alive"))

    async def close(self) -> None:
        """Ends the response."""
        await self._send({"type": "http.response.body", "body": b""})
