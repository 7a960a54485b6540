"""Everything that the router need not touch: the same bytes in, the same bytes out, as they come."""

from __future__ import annotations

import logging

from starlette.types import Receive, Scope, Send

from decomp_router.execute.upstream import Upstream, UpstreamError
from decomp_router.proxy.call import Call
from decomp_router.proxy.client import Client
from decomp_router.proxy.event_stream import EventStream
from decomp_router.proxy.headers import end_to_end
from decomp_router.proxy.replies import error, reply

_log = logging.getLogger(__name__)


class PassThrough:
    """An ASGI app that hands every request to the upstream."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Streams the request's body on and the response back."""
        client = Client(scope, receive)
        body = client.chunks() if client.has_body else None
        await client.while_present(self.forward(Call(scope, body, send)))

    async def forward(self, call: Call) -> None:
        """One request to the upstream and its response to the client; 502 if there is none."""
        send, started = call.send, False
        try:
            async with self._upstream.stream(call.untouched()) as response:
                headers = list(end_to_end(response.headers))
                await send({"type": "http.response.start", "status": response.status, "headers": headers})
                started = True
                async for chunk in response.chunks:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                await send({"type": "http.response.body", "body": b""})
        except UpstreamError as failure:
            if not started:
                await reply(send, 502, error(str(failure), "upstream_error"))
                return
            # Returning now makes the server cut the connection, which is what the client would see without us.
            _log.warning("%s", failure)

    async def append(self, call: Call, stream: EventStream) -> None:
        """The upstream's answer to a streaming request, into a stream that has been opened already."""
        try:
            async with self._upstream.stream(call.unencoded()) as response:
                if response.status != 200:
                    raise UpstreamError(f"The upstream answered with status {response.status}.")
                async for chunk in response.chunks:
                    await stream.write(chunk)
        except UpstreamError as failure:
            await stream.write_error(str(failure))
