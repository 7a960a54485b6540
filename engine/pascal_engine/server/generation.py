"""One generation seen from the event loop: its events, and its end when the client goes away."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from pascal_engine.schedule.sequence import Delta, Embedded, Event, Failed, Finished, GenerationRequest, Progress
from pascal_engine.schedule.worker import Worker
from pascal_engine.server.errors import ApiError


class Generation:
    """A request handed to the engine. Errors of submission are raised by the constructor."""

    def __init__(self, worker: Worker, request: GenerationRequest) -> None:
        self.request = request
        self._worker = worker
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._sequence = worker.submit(request, self._receive)

    @property
    def task(self) -> int:
        return self._sequence.task

    def cancel(self) -> None:
        """Frees the slot; harmless after the end."""
        self._worker.cancel(self._sequence)

    async def events(self) -> AsyncIterator[Delta | Finished]:
        """Deltas, then `Finished`; a failure of the engine is an `ApiError`."""
        while True:
            event = await self._events.get()
            if isinstance(event, Failed):
                raise ApiError(500, event.message)
            if isinstance(event, Progress | Embedded):
                continue
            yield event
            if isinstance(event, Finished):
                return

    def _receive(self, event: Event) -> None:
        # Called on the engine's thread; when the loop is closed, nobody is left to tell.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._events.put_nowait, event)


class Cancellable(Protocol):
    """Something under way in the engine."""

    def cancel(self) -> None:
        """Frees its slots; harmless after the end."""


class GenerationResponse(Response):
    """A response that cancels what it is made of if the client disconnects first, even before the first token."""

    def __init__(self, generation: Cancellable, produce: Callable[[Send], Awaitable[None]]) -> None:
        self.background = None
        self._generation = generation
        self._produce = produce

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        producer = asyncio.ensure_future(self._produce(send))
        watcher = asyncio.ensure_future(_disconnected(receive))
        try:
            await asyncio.wait({producer, watcher}, return_when=asyncio.FIRST_COMPLETED)
            if producer.done():
                producer.result()
        finally:
            self._generation.cancel()
            for task in (producer, watcher):
                task.cancel()
            await asyncio.gather(producer, watcher, return_exceptions=True)


def whole(generation: Generation, build: Callable[[list[Delta], Finished], dict[str, object]]) -> Response:
    """The answer in one piece, once it is complete."""

    async def produce(send: Send) -> None:
        deltas: list[Delta] = []
        try:
            async for event in generation.events():
                if isinstance(event, Finished):
                    await _send_json(send, 200, build(deltas, event))
                else:
                    deltas.append(event)
        except ApiError as error:
            await _send_json(send, error.status, error.body)

    return GenerationResponse(generation, produce)


def stream(generation: Generation, chunks: Callable[[Delta | Finished], list[dict[str, object]]], end: str) -> Response:
    """The answer as server-sent events, `chunks` of each event in turn; `end` is sent last as it is."""

    async def produce(send: Send) -> None:
        headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        try:
            async for event in generation.events():
                for chunk in chunks(event):
                    await send(_body(f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n", more=True))
        except ApiError as error:
            await send(_body(f"data: {json.dumps(error.body)}\n\n", more=True))
        await send(_body(end, more=False))

    return GenerationResponse(generation, produce)


async def _send_json(send: Send, status: int, content: dict[str, object]) -> None:
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send(_body(json.dumps(content, ensure_ascii=False), more=False))


def _body(text: str, *, more: bool) -> Message:
    return {"type": "http.response.body", "body": text.encode("utf-8", "replace"), "more_body": more}


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
