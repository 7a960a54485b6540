"""The client's side of a connection: what it sends, and whether it is still there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any

from starlette.types import Receive, Scope


class ClientGone(Exception):  # noqa: N818 - an event, not a fault
    """The client went away before its request was whole."""


class Client:
    """Reads the request body once, and from then on listens for the client's leaving."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        names = {name for name, _ in scope["headers"]}
        self.has_body = bool(names & {b"content-length", b"transfer-encoding"})
        self._receive = receive
        self._read = asyncio.Event()
        if not self.has_body:
            self._read.set()

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives; raises ClientGone."""
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            more = message.get("more_body", False)
            if chunk := message.get("body", b""):
                yield chunk
        self._read.set()

    async def body(self) -> bytes:
        """The whole body; raises ClientGone."""
        return b"".join([chunk async for chunk in self.chunks()]) if self.has_body else b""

    async def while_present(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs work to its end, or cancels it as soon as the client is gone."""
        tasks = (asyncio.create_task(work), asyncio.create_task(self._gone()))
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            outcome, _ = await asyncio.gather(*tasks, return_exceptions=True)
        if isinstance(outcome, Exception) and not isinstance(outcome, ClientGone):
            raise outcome

    async def _gone(self) -> None:
        await self._read.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass
