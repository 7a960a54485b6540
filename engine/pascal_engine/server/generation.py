"""One generation seen from the event loop: its events, and its end when the client goes away."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from functools import partial
from typing import TypeAlias

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from pascal_engine.schedule.sequence import Delta, Event, Failed, Finished, GenerationRequest, Progress, Sequence
from pascal_engine.schedule.worker import Worker
from pascal_engine.server.errors import ApiError

Reported: TypeAlias = Delta | Progress | Finished
"""What the engine tells about a request that it can serve; `Progress` only where the request asks for it."""


class Generations:
    """Requests of one client, handed to the engine together. Errors of submission are raised by the constructor; then
    none of them runs."""

    def __init__(self, worker: Worker, requests: Iterable[GenerationRequest]) -> None:
        self.sequences: list[Sequence] = []
        self._worker = worker
        self._events: asyncio.Queue[tuple[int, Event]] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        try:
            for index, request in enumerate(requests):
                self.sequences.append(worker.submit(request, partial(self._receive, index)))
        except Exception:
            self.cancel()
            raise

    def cancel(self) -> None:
        """Frees the slots; harmless after the end."""
        for sequence in self.sequences:
            self._worker.cancel(sequence)

    async def events(self) -> AsyncIterator[tuple[int, Reported]]:
        """The number of a request and what happened to it, until all are finished; a failure of the engine is an
        `ApiError`."""
        n_running = len(self.sequences)
        while n_running:
            index, event = await self._events.get()
            if isinstance(event, Failed):
                raise ApiError(500, event.message)
            yield index, event
            n_running -= isinstance(event, Finished)

    def _receive(self, index: int, event: Event) -> None:
        # Called on the engine's thread; when the loop is closed, nobody is left to tell.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._events.put_nowait, (index, event))


class Generation:
    """One request handed to the engine: see `Generations`."""

    def __init__(self, worker: Worker, request: GenerationRequest) -> None:
        self.request = request
        self._all = Generations(worker, [request])

    @property
    def task(self) -> int:
        return self._all.sequences[0].task

    def cancel(self) -> None:
        """Frees the slot; harmless after the end."""
        self._all.cancel()

    async def events(self) -> AsyncIterator[Reported]:
        """Deltas and the like, then `Finished`; a failure of the engine is an `ApiError`."""
        async for _, event in self._all.events():
            yield event


class GenerationResponse(Response):
    """A response that cancels its generations if the client disconnects first, even before the first token."""

    def __init__(self, generation: Generation | Generations, produce: Callable[[Send], Awaitable[None]]) -> None:
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
                    await send_json(send, 200, build(deltas, event))
                elif isinstance(event, Delta):
                    deltas.append(event)
        except ApiError as error:
            await send_json(send, error.status, error.body)

    return GenerationResponse(generation, produce)


def stream(generation: Generation, chunks: Callable[[Reported], list[dict[str, object]]], end: str) -> Response:
    """The answer as server-sent events, `chunks` of each event in turn; `end` is sent last as it is."""

    async def contents() -> AsyncIterator[dict[str, object]]:
        async for event in generation.events():
            for chunk in chunks(event):
                yield chunk

    return GenerationResponse(generation, lambda send: send_stream(send, contents(), end))


async def send_json(send: Send, status: int, content: object) -> None:
    """A whole answer."""
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send(_body(json.dumps(content, ensure_ascii=False), more=False))


async def send_stream(send: Send, contents: AsyncIterator[dict[str, object]], end: str) -> None:
    """Server-sent events, one for each content and one for the error that ends them, if one does; then `end`."""
    headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    try:
        async for content in contents:
            await send(_body(f"data: {json.dumps(content, ensure_ascii=False)}\n\n", more=True))
    except ApiError as error:
        await send(_body(f"data: {json.dumps(error.body)}\n\n", more=True))
    await send(_body(end, more=False))


def _body(text: str, *, more: bool) -> Message:
    return {"type": "http.response.body", "body": text.encode("utf-8", "replace"), "more_body": more}


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
