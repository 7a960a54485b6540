"""A fan-out to its client: as a stream or as one object, and what happens when it fails."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.types import Send

from decomp_router.execute.answer import Chunks, completion
from decomp_router.execute.fanout import Fanout, FanoutFailed
from decomp_router.execute.section import Piece
from decomp_router.execute.upstream import Headers
from decomp_router.proxy.call import Call
from decomp_router.proxy.event_stream import EventStream, Sleep
from decomp_router.proxy.passthrough import PassThrough
from decomp_router.proxy.records import Record
from decomp_router.proxy.replies import reply


@dataclass(frozen=True)
class Delivery:
    """Sends merged answers; where one fails before its first word, the request runs linearly."""

    linear: PassThrough
    sleep: Sleep

    async def deliver(self, fanout: Fanout, body: Mapping[str, Any], call: Call, record: Record) -> None:
        """Runs the fan-out and answers the client, whatever becomes of it."""
        stream = EventStream(call.send, _headers(fanout), self.sleep)
        try:
            if body.get("stream"):
                await self._stream(fanout, stream, usage=_wants_usage(body))
            else:
                await self._object(fanout, call.send)
            record.outcome = "done"
        except FanoutFailed as failure:
            record.outcome = f"{'broke off' if failure.sent else 'ran linearly instead'}: {failure.reason}"
            if not stream.opened:
                await self.linear.forward(call)
                return
            if failure.sent:
                await stream.write_error(failure.reason)
            else:
                await self.linear.append(call, stream)
        if stream.opened:
            await stream.close()

    async def _stream(self, fanout: Fanout, stream: EventStream, *, usage: bool) -> None:
        begun = False

        async def emit(piece: Piece) -> None:
            nonlocal begun
            chunks = Chunks(fanout.head)
            await stream.write(chunks.piece(piece) if begun else chunks.opening() + chunks.piece(piece))
            begun = True

        pinger = asyncio.create_task(stream.keep_alive())
        try:
            ending = await fanout.run(emit)
        finally:
            pinger.cancel()
            await asyncio.wait([pinger])
        chunks = Chunks(fanout.head)
        await stream.write((b"" if begun else chunks.opening()) + chunks.closing(ending, usage=usage))

    async def _object(self, fanout: Fanout, send: Send) -> None:
        pieces: list[Piece] = []

        async def emit(piece: Piece) -> None:
            pieces.append(piece)

        try:
            ending = await fanout.run(emit)
        except FanoutFailed as failure:
            raise FanoutFailed(failure.reason, sent=False) from failure
        await reply(send, 200, completion(fanout.head, pieces, ending), _headers(fanout))


def _headers(fanout: Fanout) -> Headers:
    return (
        (b"x-decomp-decision", b"fanout"),
        (b"x-decomp-width", str(fanout.width).encode()),
        (b"x-accel-buffering", b"no"),
    )


def _wants_usage(body: Mapping[str, Any]) -> bool:
    return bool((body.get("stream_options") or {}).get("include_usage"))
