"""Several requests to the engine that belong to one HTTP request."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

from pascal_engine.engine import Engine
from pascal_engine.errors import PromptTooLongError
from pascal_engine.schedule.sequence import Delta, Embedded, Event, Failed, Finished, GenerationRequest, Progress
from pascal_engine.schedule.sequence import Sequence as Running
from pascal_engine.server.errors import ApiError

Indexed = tuple[int, Delta | Progress | Embedded | Finished]
"""The index of a request, and what happened to it."""


class Generations:
    """Hands over as many requests at a time as there are slots, so that a long list leaves the queue to others.

    Raises `PromptTooLongError` for any of them, and `QueueFullError`, when it is made.
    """

    def __init__(self, engine: Engine, requests: Sequence[GenerationRequest]) -> None:
        scheduler = engine.scheduler
        for request in requests:
            if len(request.tokens) >= scheduler.n_ctx:
                raise PromptTooLongError(len(request.tokens), scheduler.n_ctx)
        self._worker = engine.worker
        self._requests = requests
        self._events: asyncio.Queue[tuple[int, Event]] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._running: list[Running] = []
        try:
            for _ in range(min(len(requests), len(scheduler.slots))):
                self._submit_next()
        except Exception:
            self.cancel()
            raise

    async def events(self) -> AsyncIterator[Indexed]:
        """The events of all requests as they come; a failure of the engine is an `ApiError`."""
        n_finished = 0
        while n_finished < len(self._requests):
            index, event = await self._events.get()
            if isinstance(event, Failed):
                raise ApiError(500, event.message)
            yield index, event
            if isinstance(event, Finished):
                n_finished += 1
                if len(self._running) < len(self._requests):
                    self._submit_next()

    def sequence(self, index: int) -> Running:
        """The sequence that serves a request that was handed over."""
        return self._running[index]

    def cancel(self) -> None:
        """Frees the slots; harmless after the end."""
        for sequence in self._running:
            self._worker.cancel(sequence)

    def _submit_next(self) -> None:
        index = len(self._running)

        def receive(event: Event) -> None:
            # Called on the engine's thread; when the loop is closed, nobody is left to tell.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._events.put_nowait, (index, event))

        self._running.append(self._worker.submit(self._requests[index], receive))
