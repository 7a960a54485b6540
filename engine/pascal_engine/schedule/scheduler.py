"""Continuous batching: who computes what in each step."""

import contextlib
import itertools
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from pascal_engine.backend.batch import BLOCK, Batch
from pascal_engine.errors import NoSuchSlotError, PromptTooLongError
from pascal_engine.hybrid.model import Model
from pascal_engine.memory import PrefixCache, StatePools
from pascal_engine.memory.checkpoints import WORTHWHILE, CheckpointPlan
from pascal_engine.memory.prefix_cache import Tokens
from pascal_engine.schedule.admission import WaitingQueue
from pascal_engine.schedule.counters import Counters
from pascal_engine.schedule.sequence import Event, GenerationRequest, Sequence
from pascal_engine.schedule.turns import Turns, followers_of
from pascal_engine.tokenizer import Tokenizer

T = TypeVar("T")


@dataclass
class Slot:
    """A row of the pools and the sequence that owns it, if any; `held` are the tokens whose state an idle row holds
    until another sequence takes it. `last` is the sequence that left it last."""

    row: int
    sequence: Sequence | None = None
    last: Sequence | None = None
    held: Tokens = field(default_factory=lambda: np.empty(0, np.int32))

    @property
    def is_processing(self) -> bool:
        """Whether its sequence is at work. One that has ended stays in its slot until the step is over."""
        sequence = self.sequence
        return sequence is not None and not sequence.finished


class Scheduler:
    """Shares the model among sequences: each step decodes one token for every active sequence in one batch, and
    prefills one chunk of one prompt. What two prompts begin with is prefilled once.

    `submit` and `call` may be called from any thread, `step` and `fail_all` from one thread only.
    """

    def __init__(
        self,
        model: Model,
        pools: StatePools,
        tokenizer: Tokenizer,
        clock: Callable[[], float],
        max_waiting: int = 256,
        cache_bytes: int = 0,
    ) -> None:
        self.n_ctx = pools.n_ctx
        self.slots = [Slot(row) for row in range(pools.n_rows)]
        self.cache = PrefixCache(pools.page_bytes, pools.recurrent_bytes, cache_bytes)
        self.counters = Counters()
        self._model, self._pools, self._tokenizer = model, pools, tokenizer
        self._clock = clock
        self._queue = WaitingQueue(max_waiting)
        self._turns = Turns()
        self._tasks = itertools.count()
        self._calls: deque[tuple[Future[Any], Callable[[], Any]]] = deque()

    def submit(self, request: GenerationRequest, sink: Callable[[Event], None]) -> Sequence:
        """Queues a request; its events go to `sink`, called from the stepping thread.

        Raises `PromptTooLongError`, `QueueFullError`, `NoSuchSlotError` or `SamplingError`; then nothing was queued.
        """
        assert request.tokens, "a prompt has at least one token"
        if len(request.tokens) >= self.n_ctx:
            raise PromptTooLongError(len(request.tokens), self.n_ctx)
        if request.slot is not None and not 0 <= request.slot < len(self.slots):
            raise NoSuchSlotError(request.slot, len(self.slots))
        plan = CheckpointPlan(len(request.tokens), request.marks, every_block=not self._pools.recurrent_bytes)
        sequence = Sequence(request, next(self._tasks), self.n_ctx, self._tokenizer, sink, plan)
        self._queue.add(sequence)
        return sequence

    def call(self, action: Callable[[], T]) -> "Future[T]":
        """Has `action` done between two steps, where it may use slots, pools and cache."""
        future: Future[T] = Future()
        self._calls.append((future, action))
        return future

    @property
    def has_work(self) -> bool:
        return bool(self._queue or self._calls) or any(slot.sequence for slot in self.slots)

    @property
    def n_waiting(self) -> int:
        """How many requests wait for a slot."""
        return len(self._queue.waiting())

    def step(self) -> None:
        """Advances all sequences by one decoded token, and one of them by one prefill chunk."""
        self._do_calls()
        self._release()
        self._admit()
        owned = [(slot.row, slot.sequence) for slot in self.slots if slot.sequence is not None]
        rows = {sequence: row for row, sequence in owned if sequence.in_prefill}
        self._decode([(row, sequence) for row, sequence in owned if not sequence.in_prefill])
        if rows:
            self._prefill(self._turns.choose(rows), rows)
        self._release()

    def fail_all(self, message: str) -> None:
        """Ends every sequence in a slot with `Failed` and clears its row in full."""
        for slot in self.slots:
            if slot.sequence is not None:
                slot.sequence.fail(message)
                self._pools.clear(slot.row, self.n_ctx)
                slot.sequence = None

    def _do_calls(self) -> None:
        while self._calls:
            future, action = self._calls.popleft()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(action())
            except Exception as error:  # it belongs to whoever asked
                future.set_exception(error)

    def _release(self) -> None:
        self._queue.drop_cancelled()
        for slot in self.slots:
            sequence = slot.sequence
            if sequence is not None and (sequence.finished or sequence.cancelled):
                if sequence.n_computed:
                    self._keep(slot.row, sequence)
                self.counters.add_usage(sequence.usage(len(sequence.generated), self._clock()))
                slot.held = sequence.computed
                slot.last = sequence
                slot.sequence = None

    def _admit(self) -> None:
        free = {slot.row for slot in self.slots if slot.sequence is None}
        while free and (taken := self._queue.take(free)) is not None:
            sequence, row = taken
            free.remove(row)
            slot = self.slots[row]
            self._pools.clear(row, len(slot.held))
            slot.held = slot.held[:0]
            slot.sequence = sequence
            self._turns.join(sequence)
            sequence.start(row, self._clock())
            self._reuse(row, sequence)

    def _reuse(self, row: int, sequence: Sequence) -> None:
        """Takes from the cache what it has of the prompt, but for its last token; where the prompt leaves what others
        computed too, a checkpoint is due."""
        known = self.cache.longest(sequence.prompt[:-1]) if sequence.request.reuse else None
        if known is not None and known.n_tokens > sequence.n_computed:
            self._pools.clear(row, sequence.n_computed)
            self._pools.load(row, known.n_tokens, known)
            sequence.n_computed = known.n_tokens
        fork = self.cache.shared(sequence.prompt[:-1])
        if fork - sequence.n_computed >= WORTHWHILE:
            sequence.plan.add(fork)

    def _keep(self, row: int, sequence: Sequence) -> None:
        """Puts the state of `row` into the cache, if it may be used again: see `Backend.uniform`."""
        if sequence.pooler is not None:  # few texts are embedded twice, and chats need the room
            return
        if self._pools.uniform or sequence.n_computed <= len(sequence.prompt):
            with contextlib.suppress(MemoryError):  # the cache is a help, no need
                self.cache.put(sequence.computed, self._pools.row(row))

    def _decode(self, active: list[tuple[int, Sequence]]) -> None:
        if not active:
            return
        batch = Batch.decode(
            tokens=[sequence.generated[-1] for _, sequence in active],
            positions=[sequence.n_computed for _, sequence in active],
            rows=[row for row, _ in active],
        )
        logits = self._model.forward(batch, self._pools)
        self.counters.add_batch(len(active))
        for (_, sequence), row_logits in zip(active, logits, strict=True):
            sequence.n_computed += 1
            sequence.take(row_logits, self._clock())

    def _prefill(self, sequence: Sequence, rows: dict[Sequence, int]) -> None:
        row = rows[sequence]
        if not sequence.n_prefilled:
            self._reuse(row, sequence)  # the cache may know more by now
        start = sequence.n_computed
        followers = followers_of(sequence, rows)
        self._plan_forks(sequence, followers)
        end = sequence.plan.chunk_end(start)
        logits = self._compute(sequence, Batch.prefill(sequence.prompt[start:end].tolist(), start, row))
        self.counters.add_batch(1)
        sequence.n_computed = end
        sequence.n_prefilled += end - start
        now = self._clock()
        sequence.report_progress(now)
        if sequence.plan.keeps(end):
            self._keep(row, sequence)
        self._branch(sequence, {other: rows[other] for other in followers if other.shared_with(sequence) == end}, row)
        if not sequence.in_prefill:
            sequence.embed(now) if logits is None else sequence.take(logits[0], now)

    def _compute(self, sequence: Sequence, batch: Batch) -> npt.NDArray[np.float32] | None:
        """The logits [1, vocabulary] after a chunk, or none where its hidden states go into an embedding."""
        if sequence.pooler is None:
            return self._model.forward(batch, self._pools)
        sequence.pooler.add(self._model.hidden(batch, self._pools))
        return None

    def _plan_forks(self, sequence: Sequence, followers: list[Sequence]) -> None:
        """Makes `sequence` stop where others, in slots or in the queue, go on by themselves."""
        for follower in followers:
            sequence.plan.add(follower.shared_with(sequence))
        fork = self._next_queued_fork(sequence)
        if fork is not None:
            sequence.plan.add(fork)

    def _next_queued_fork(self, sequence: Sequence) -> int | None:
        """Where in its next block a request in the queue will leave the prompt of `sequence`, if the cache then gains
        by a checkpoint there."""
        if not self.cache.budget_bytes:
            return None
        start = sequence.n_computed
        forks = {other.shared_with(sequence) for other in self._queue.waiting() if other.request.reuse}
        ahead = sorted(fork for fork in forks if start < fork <= start + BLOCK)
        return next((fork for fork in ahead if not self.cache.has_near(sequence.prompt[:fork], WORTHWHILE)), None)

    def _branch(self, leader: Sequence, followers: dict[Sequence, int], row: int) -> None:
        """Gives the followers, each in its row, the state of the leader's row."""
        if not followers:
            return
        snapshot = self._pools.snapshot(row, leader.n_computed)
        for follower, target in followers.items():
            self._pools.clear(target, follower.n_computed)
            self._pools.load(target, leader.n_computed, snapshot)
            follower.n_computed = leader.n_computed
