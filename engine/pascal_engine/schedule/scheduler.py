"""Continuous batching: who computes what in each step."""

import itertools
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from pascal_engine.backend.batch import BLOCK, Batch
from pascal_engine.errors import PromptTooLongError, QueueFullError
from pascal_engine.hybrid.model import Model
from pascal_engine.memory import StatePools
from pascal_engine.schedule.sequence import Event, Failed, GenerationRequest, Sequence
from pascal_engine.tokenizer import Tokenizer


@dataclass
class Slot:
    """A row of the pools and the sequence that owns it, if any."""

    row: int
    sequence: Sequence | None = None


class Scheduler:
    """Shares the model among sequences: each step decodes one token for every active sequence in one batch, and
    prefills one chunk of the oldest prompt that is not done.

    `submit` and `cancel` may be called from any thread, `step` and `fail_all` from one thread only.
    """

    def __init__(
        self,
        model: Model,
        pools: StatePools,
        tokenizer: Tokenizer,
        clock: Callable[[], float],
        max_waiting: int = 256,
    ) -> None:
        self.n_ctx = pools.n_ctx
        self.slots = [Slot(row) for row in range(pools.n_rows)]
        self._model, self._pools, self._tokenizer = model, pools, tokenizer
        self._clock = clock
        self._max_waiting = max_waiting
        self._waiting: deque[Sequence] = deque()
        self._tasks = itertools.count()
        self._lock = threading.Lock()

    def submit(self, request: GenerationRequest, sink: Callable[[Event], None]) -> Sequence:
        """Queues a request; its events go to `sink`, called from the stepping thread.

        Raises `PromptTooLongError` or `QueueFullError`; then nothing was queued.
        """
        assert request.tokens, "a prompt has at least one token"
        if len(request.tokens) >= self.n_ctx:
            raise PromptTooLongError(len(request.tokens), self.n_ctx)
        with self._lock:
            if len(self._waiting) >= self._max_waiting:
                raise QueueFullError(f"{len(self._waiting)} requests wait for a slot already; try again later")
            sequence = Sequence(request, next(self._tasks), self.n_ctx, self._tokenizer, sink)
            self._waiting.append(sequence)
        return sequence

    @property
    def has_work(self) -> bool:
        return bool(self._waiting) or any(slot.sequence for slot in self.slots)

    def step(self) -> None:
        """Advances all sequences by one decoded token, and one of them by one prefill chunk."""
        self._release()
        self._admit()
        owned = [(slot.row, slot.sequence) for slot in self.slots if slot.sequence is not None]
        prefilling = [(row, sequence) for row, sequence in owned if sequence.in_prefill]
        self._decode([(row, sequence) for row, sequence in owned if not sequence.in_prefill])
        if prefilling:
            self._prefill(*min(prefilling, key=lambda pair: pair[1].task))
        self._release()

    def fail_all(self, message: str) -> None:
        """Ends every sequence in a slot with `Failed` and clears its row in full."""
        for slot in self.slots:
            if slot.sequence is not None:
                slot.sequence.sink(Failed(message))
                self._pools.clear(slot.row, self.n_ctx)
                slot.sequence = None

    def _release(self) -> None:
        for slot in self.slots:
            sequence = slot.sequence
            if sequence is not None and (sequence.finished or sequence.cancelled):
                self._pools.clear(slot.row, sequence.n_computed)
                slot.sequence = None

    def _admit(self) -> None:
        idle = [slot for slot in self.slots if slot.sequence is None]
        with self._lock:
            self._waiting = deque(sequence for sequence in self._waiting if not sequence.cancelled)
            for slot in idle[: len(self._waiting)]:
                slot.sequence = self._waiting.popleft()
                slot.sequence.start(slot.row, self._clock())

    def _decode(self, active: list[tuple[int, Sequence]]) -> None:
        if not active:
            return
        batch = Batch.decode(
            tokens=[sequence.generated[-1] for _, sequence in active],
            positions=[sequence.n_computed for _, sequence in active],
            rows=[row for row, _ in active],
        )
        logits = self._model.forward(batch, self._pools)
        for (_, sequence), row_logits in zip(active, logits, strict=True):
            sequence.n_computed += 1
            sequence.take(row_logits, self._clock())

    def _prefill(self, row: int, sequence: Sequence) -> None:
        chunk = sequence.request.tokens[sequence.n_computed : sequence.n_computed + BLOCK]
        logits = self._model.forward(Batch.prefill(list(chunk), sequence.n_computed, row), self._pools)
        sequence.n_computed += len(chunk)
        if not sequence.in_prefill:
            sequence.take(logits[0], self._clock())
