"""What is timed: sequences of random tokens, prefilled and decoded without sampling."""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from pascal_engine.backend.batch import BLOCK, Batch
from pascal_engine.engine import Engine
from pascal_engine.memory.checkpoints import Snapshot


@dataclass(frozen=True)
class Case:
    """`parallel` sequences: behind `depth` tokens of context that are not timed each prefills `n_prompt` tokens, one
    prompt after the other, and then all decode `n_gen` tokens together."""

    n_prompt: int
    n_gen: int
    depth: int = 0
    parallel: int = 1

    @property
    def n_ctx(self) -> int:
        return self.depth + self.n_prompt + self.n_gen


@dataclass(frozen=True)
class Timing:
    """Seconds of both phases; `best` [steps, sequences] is the token liked best after each decoded one (after the
    prompt where none is), `logits` [sequences, vocabulary] are the last ones."""

    prefill_s: float
    decode_s: float
    best: npt.NDArray[np.int64]
    logits: npt.NDArray[np.float32]

    @property
    def tokens_sha256(self) -> str:
        return hashlib.sha256(self.best.tobytes()).hexdigest()

    @property
    def logits_sha256(self) -> str:
        return hashlib.sha256(self.logits.tobytes()).hexdigest()


class Runner:
    """Runs cases on an engine whose service is not started; `seed` decides the tokens."""

    def __init__(self, engine: Engine, seed: int, clock: Callable[[], float] = time.perf_counter) -> None:
        self._model, self._pools, self._n_vocab = engine.model, engine.pools, engine.info.n_vocab
        self._seed = seed
        self._clock = clock
        self._filled = Snapshot(0, (), ())

    def warm_up(self, case: Case) -> None:
        """Touches all that `case` will, and leaves the context before it ready."""
        self.run(Case(min(case.n_prompt, BLOCK), min(case.n_gen, 1), case.depth, case.parallel))

    def run(self, case: Case) -> Timing:
        rng = np.random.default_rng(self._seed)
        prompts = rng.integers(self._n_vocab, size=(case.parallel, case.n_prompt))
        answers = rng.integers(self._n_vocab, size=(case.n_gen, case.parallel))
        self._fill(case)
        begun = self._clock()
        prefilled = [
            self._prefill(row, prompt.tolist(), case.depth) for row, prompt in enumerate(prompts) if len(prompt)
        ]
        prefill_s = self._clock() - begun
        logits = np.concatenate(prefilled) if prefilled else np.empty((0, self._n_vocab), np.float32)
        best = [] if case.n_gen else [logits.argmax(axis=1)]
        begun = self._clock()
        for step, tokens in enumerate(answers.tolist()):
            position = case.depth + case.n_prompt + step
            batch = Batch.decode(tokens, [position] * case.parallel, list(range(case.parallel)))
            logits = self._model.forward(batch, self._pools)
            best.append(logits.argmax(axis=1))
        return Timing(prefill_s, self._clock() - begun, np.stack(best), logits)

    def _fill(self, case: Case) -> None:
        """Brings every row to its depth; what one row was prefilled with is copied to the others, and kept."""
        for row in range(case.parallel):
            self._pools.clear(row, self._pools.n_ctx)
        if not case.depth:
            return
        if self._filled.n_tokens != case.depth:
            rng = np.random.default_rng([self._seed, case.depth])
            self._prefill(0, rng.integers(self._n_vocab, size=case.depth).tolist(), 0)
            self._filled = self._pools.snapshot(0, case.depth)
            self._pools.clear(0, case.depth)
        for row in range(case.parallel):
            self._pools.load(row, case.depth, self._filled)

    def _prefill(self, row: int, tokens: list[int], start: int) -> npt.NDArray[np.float32]:
        """The logits [1, vocabulary] after tokens that begin at position `start`."""
        end = start + len(tokens)
        cuts = [start, *range((start // BLOCK + 1) * BLOCK, end, BLOCK), end]
        for begin, stop in pairwise(cuts):
            batch = Batch.prefill(tokens[begin - start : stop - start], begin, row)
            logits = self._model.forward(batch, self._pools)
        return logits
