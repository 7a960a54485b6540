"""The thread that steps the scheduler, so that the event loop stays free."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from pascal_engine.schedule.scheduler import Scheduler
from pascal_engine.schedule.sequence import Event, GenerationRequest, Sequence

T = TypeVar("T")

_log = logging.getLogger(__name__)


class Worker:
    """Runs the scheduler while it has work and sleeps while it has none."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._changed = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends after the step in progress; sequences not finished get no more events."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join()

    def submit(self, request: GenerationRequest, sink: Callable[[Event], None]) -> Sequence:
        """As `Scheduler.submit`, and wakes the thread."""
        sequence = self._scheduler.submit(request, sink)
        self._wake()
        return sequence

    def cancel(self, sequence: Sequence) -> None:
        """The sequence leaves its slot, or the queue, before the next step."""
        sequence.cancelled = True
        self._wake()

    def call(self, action: Callable[[], T]) -> "Future[T]":
        """As `Scheduler.call`, and wakes the thread."""
        future = self._scheduler.call(action)
        self._wake()
        return future

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._stopping or self._scheduler.has_work)
                if self._stopping:
                    return
            try:
                self._scheduler.step()
            except Exception:  # one request's trouble must not end the service
                _log.exception("a step failed")
                self._scheduler.fail_all("the engine failed while computing this answer; see its log")
