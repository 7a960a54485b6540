"""One request on its way through the engine, and the events it sends back."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from pascal_engine.memory.checkpoints import CheckpointPlan
from pascal_engine.memory.prefix_cache import Tokens, common_length
from pascal_engine.sampling.constraint import Constraint, ConstraintError
from pascal_engine.sampling.params import SamplingError, SamplingParams, TokenProbs
from pascal_engine.sampling.sampler import Choice, Sampler
from pascal_engine.schedule.pooling import Pooler, Pooling
from pascal_engine.schedule.stop import StopMatcher
from pascal_engine.tokenizer import Detokenizer, Tokenizer

Priority = Literal["interactive", "branch"]
StopReason = Literal["eos", "word", "limit"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class GenerationRequest:
    """What to generate: `max_tokens` None means until the context is full. With `ignore_eos` the end-of-generation
    tokens are banned; an answer whose `constraint` lets nothing follow ends all the same.

    `marks` are the counts of prompt tokens whose state is worth keeping, such as the ends of messages; without `reuse`
    nothing is taken from the prefix cache or from another request. A "branch" lets "interactive" requests go first.
    A request that names a `slot` waits for that one. After `time_limit_ms` of decoding the answer ends with its next
    new line (llama-server's t_max_predict_ms). With `report_progress` each chunk of prefill is reported. With `pooling`
    the prompt's embedding is made, and nothing generated.
    """

    tokens: tuple[int, ...]
    max_tokens: int | None = None
    sampling: SamplingParams = field(default_factory=SamplingParams)
    stop: tuple[str, ...] = ()
    ignore_eos: bool = False
    marks: tuple[int, ...] = ()
    priority: Priority = "interactive"
    reuse: bool = True
    constraint: Constraint | None = None
    slot: int | None = None
    time_limit_ms: float | None = None
    report_progress: bool = False
    pooling: Pooling | None = None

    def __post_init__(self) -> None:
        assert self.pooling is None or not self.reuse, "an embedding needs the states of all tokens"


@dataclass(frozen=True)
class Usage:
    """Tokens and milliseconds of a request's two phases; the time in the queue is in neither.

    Of the prompt's tokens `prompt_n` were prefilled for this request, and `cache_n` were not: their state was copied.
    """

    cache_n: int
    prompt_n: int
    prompt_ms: float
    predicted_n: int
    predicted_ms: float

    @property
    def prompt_total(self) -> int:
        return self.cache_n + self.prompt_n


@dataclass(frozen=True)
class Delta:
    """New tokens and the text that became certain with them (it may lag behind, or be empty). `probs` belong to
    `tokens` one by one; without `n_probs` there are none."""

    text: str
    tokens: tuple[int, ...]
    probs: tuple[TokenProbs, ...] = ()


@dataclass(frozen=True)
class Progress:
    """How far the prefill is: of the prompt's `total` tokens `processed` are done, `cache` of them by copying state;
    `time_ms` since a slot took the request up."""

    total: int
    cache: int
    processed: int
    time_ms: float


@dataclass(frozen=True, eq=False)
class Embedded:
    """The embedding [hidden] of the prompt, not normalised."""

    values: npt.NDArray[np.float32]


@dataclass(frozen=True)
class Finished:
    """The end of an answer; `truncated` where the context ran full."""

    reason: StopReason
    stopping_word: str
    truncated: bool
    slot: int
    usage: Usage


@dataclass(frozen=True)
class Failed:
    """The engine could not go on with this request."""

    message: str


Event: TypeAlias = Delta | Progress | Embedded | Finished | Failed


class Sequence:
    """The tokens of one request, computed and still to compute; `sink` receives its events in order.

    Raises `SamplingError` where the model does not have what the request's sampling names.
    """

    def __init__(
        self,
        request: GenerationRequest,
        task: int,
        n_ctx: int,
        tokenizer: Tokenizer,
        sink: Callable[[Event], None],
        plan: CheckpointPlan,
    ) -> None:
        self.request = request
        self.task = task
        self.sink = sink
        self.plan = plan
        self.prompt: Tokens = np.array(request.tokens, np.int32)
        self.cancelled = False
        self.n_computed = 0
        self.n_prefilled = 0
        self.passed_over = 0
        self.last_turn = 0
        self.generated: list[int] = []
        self.finished = False
        self.pooler = Pooler(request.pooling) if request.pooling else None
        self._slot = -1
        self._n_ctx = n_ctx
        self._tokenizer = tokenizer
        self._constraint = None if request.constraint is None else request.constraint.start()
        banned = tokenizer.end_of_generation if request.ignore_eos else ()
        self._sampler = Sampler(request.sampling, tokenizer, n_ctx, request.tokens, self._constraint, banned)
        self._detokenizer = Detokenizer(tokenizer)
        self._stops = StopMatcher(request.stop)
        self._started_at = self._prompt_done_at = 0.0
        self._shared: dict[int, int] = {}

    @property
    def slot(self) -> int:
        """The slot that took the request up, -1 before that."""
        return self._slot

    @property
    def in_prefill(self) -> bool:
        return self.n_computed < len(self.prompt)

    @property
    def computed(self) -> Tokens:
        """The tokens whose state the sequence's row holds."""
        if self.n_computed <= len(self.prompt):
            return self.prompt[: self.n_computed]
        return np.concatenate([self.prompt, np.array(self.generated, np.int32)])[: self.n_computed]

    def shared_with(self, other: "Sequence") -> int:
        """How many tokens of `other`'s prompt may serve this one: one at least is computed anew, for its logits."""
        if other.task not in self._shared:
            self._shared[other.task] = min(common_length(self.prompt, other.prompt), len(self.prompt) - 1)
        return self._shared[other.task]

    def start(self, slot: int, now: float) -> None:
        """A slot takes the request up; `now` in seconds, on the scheduler's clock."""
        self._slot = slot
        self._started_at = self._prompt_done_at = now

    def embed(self, now: float) -> None:
        """Reports the embedding, once the prompt is computed."""
        assert self.pooler is not None
        self._prompt_done_at = now
        self.sink(Embedded(self.pooler.embedding))
        self._finish("limit", now)

    def report_progress(self, now: float) -> None:
        """Tells how far the prefill is, if the request asks for that."""
        if self.request.report_progress:
            cached = self.n_computed - self.n_prefilled
            time_ms = 1000 * (now - self._started_at)
            self.sink(Progress(len(self.prompt), cached, self.n_computed, time_ms))

    def take(self, logits: npt.NDArray[np.float32], now: float) -> None:
        """Chooses the next token from logits [vocabulary] and reports it. What goes wrong ends this request alone."""
        if not self.generated:
            self._prompt_done_at = now
        if self.request.max_tokens == 0:
            self._finish("limit", now)
            return
        try:
            choice = self._sampler.sample(logits)
        except (SamplingError, ConstraintError) as error:
            self.fail(str(error))
        except Exception:
            _log.exception("a token could not be chosen")
            self.fail("the engine failed while computing this answer; see its log")
        else:
            self._add(choice, now)

    def fail(self, message: str) -> None:
        """Ends the answer with `Failed`."""
        self.finished = True
        self.sink(Failed(message))

    def _add(self, choice: Choice, now: float) -> None:
        token = choice.token
        self.generated.append(token)
        text, word = self._stops.add(self._detokenizer.add(token))
        reason = self._end(token, text, now) if word is None else "word"
        if reason is not None and word is None:
            rest, word = self._stops.add(self._detokenizer.finish())
            text += rest + ("" if word else self._stops.finish())
        self.sink(Delta(text, (token,), (choice.probs,) if choice.probs else ()))
        if reason is not None:
            self._finish("word" if word else reason, now, word or "")

    def _end(self, token: int, text: str, now: float) -> StopReason | None:
        """Why the answer ends with `token`, if it does and no stop string ends it."""
        limit_ms = self.request.time_limit_ms
        if token in self._tokenizer.end_of_generation:
            return "eos"
        if self._constraint is not None and self._constraint.complete and self.request.ignore_eos:
            return "eos"
        late = limit_ms is not None and 1000 * (now - self._prompt_done_at) > limit_ms
        return "limit" if self._is_full or (late and "\n" in text) else None

    def usage(self, n_predicted: int, now: float) -> Usage:
        """Tokens and times at `now`, when `n_predicted` tokens of the answer are there."""
        prompt_done_at = now if self.in_prefill else self._prompt_done_at
        return Usage(
            cache_n=min(self.n_computed, len(self.prompt)) - self.n_prefilled,
            prompt_n=self.n_prefilled,
            prompt_ms=1000 * (prompt_done_at - self._started_at),
            predicted_n=n_predicted,
            predicted_ms=1000 * (now - prompt_done_at),
        )

    @property
    def _is_full(self) -> bool:
        return len(self.generated) == self.request.max_tokens or self._context_is_full

    @property
    def _context_is_full(self) -> bool:
        return len(self.prompt) + len(self.generated) >= self._n_ctx

    def _finish(self, reason: StopReason, now: float, word: str = "") -> None:
        self.finished = True
        usage = self.usage(len(self.generated), now)
        truncated = reason == "limit" and self._context_is_full and len(self.generated) != self.request.max_tokens
        self.sink(Finished(reason, word, truncated, self._slot, usage))
