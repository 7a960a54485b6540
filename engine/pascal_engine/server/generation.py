"""One generation seen from the event loop: its events, and its end when the client goes away."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from pascal_engine.schedule.sequence import Delta, Embedded, Event, Failed, Finished, GenerationRequest, Progress, Usage
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

    def usage(self, n_predicted: int) -> Usage:
        """Tokens and times so far, when `n_predicted` tokens of the answer are there."""
        return self._sequence.usage(n_predicted, time.perf_counter())

    async def events(self) -> AsyncIterator[Progress | Delta | Finished]:
        """How far the prompt is, if the request asks for that; deltas; then `Finished`. A failure of the engine is an
        `ApiError`."""
        while True:
            event = await self._events.get()
            if isinstance(event, Failed):
                raise ApiError(500, event.message)
            if isinstance(event, Embedded):
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


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
