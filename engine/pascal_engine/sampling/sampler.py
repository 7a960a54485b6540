"""Chooses the tokens of one request: bias and constraint, the chain, then the draw."""

import secrets
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pascal_engine.sampling.candidates import F32, F64, LARGE, Candidates, best
from pascal_engine.sampling.constraint import ConstraintState
from pascal_engine.sampling.filters import FILTERS
from pascal_engine.sampling.params import SamplingError, SamplingParams, TokenProbs
from pascal_engine.sampling.penalties import Dry, Penalties
from pascal_engine.tokenizer import Tokenizer

_Link: TypeAlias = Callable[[Candidates, Random], None]


@dataclass(frozen=True)
class Choice:
    """A token, and its probabilities where they were asked for."""

    token: int
    probs: TokenProbs | None


class Sampler:
    """Draws the tokens that follow `prompt`. A draw depends on the request's seed and the token's position in the
    sequence alone, hence on nothing that runs beside it.

    Raises `SamplingError` where `logit_bias` names a token that the model does not have.
    """

    def __init__(
        self,
        params: SamplingParams,
        tokenizer: Tokenizer,
        n_ctx: int,
        prompt: Sequence[int],
        constraint: ConstraintState | None = None,
        banned: Collection[int] = (),
    ) -> None:
        self._params = params
        self._constraint = constraint
        self._seed = secrets.randbits(64) if params.seed is None else params.seed
        self._position = len(prompt)
        self._bias = _biases(params, tokenizer.n_vocab, banned)
        self._memories: list[Penalties | Dry] = []
        self._chain = [self._link(name, tokenizer, n_ctx, prompt) for name in _effective(params)]

    def sample(self, logits: F32) -> Choice:
        """The next token, by logits [vocabulary]. Raises `SamplingError` where none may follow."""
        scores = self._allowed(logits)
        token, candidates = self._choose(scores)
        while self._constraint is not None and not self._constraint.permits(token):
            scores = scores.copy()
            scores[token] = -np.inf
            token, candidates = self._choose(scores)
        probs = self._probs(token, logits, candidates)
        self._accept(token)
        return Choice(token, probs)

    def _allowed(self, logits: F32) -> F32:
        """The logits with the biases; -inf where a token is banned, or is against the constraint."""
        scores = logits
        if len(self._bias[0]):
            scores = logits.copy()
            np.add.at(scores, *self._bias)
        mask = None if self._constraint is None else self._constraint.mask()
        return scores if mask is None else np.where(mask, scores, np.float32(-np.inf))

    def _choose(self, scores: F32) -> tuple[int, Candidates]:
        draws = Random(self._seed << 64 | self._position)
        luck = draws.random()
        if not scores.max() > -np.inf:
            raise SamplingError("no token may follow: each one is banned by 'logit_bias' or against the grammar")
        candidates = Candidates(scores)
        for link in self._chain:
            link(candidates, draws)
        cumulative = np.cumsum(candidates.probabilities())
        drawn = np.searchsorted(cumulative, luck * cumulative[-1], side="right")
        last = np.searchsorted(cumulative, cumulative[-1])  # of those with any probability
        return int(candidates.tokens[min(drawn, last)]), candidates

    def _accept(self, token: int) -> None:
        self._position += 1
        for memory in self._memories:
            memory.accept(token)
        if self._constraint is not None:
            self._constraint.accept(token)

    def _link(self, name: str, tokenizer: Tokenizer, n_ctx: int, prompt: Sequence[int]) -> _Link:
        if name in FILTERS:
            return partial(FILTERS[name], self._params)
        memory = _memory(name, self._params, tokenizer, n_ctx, prompt)
        if memory is None:
            return lambda candidates, draws: None
        self._memories.append(memory)
        return lambda candidates, draws: memory.apply(candidates)

    def _probs(self, token: int, logits: F32, left: Candidates) -> TokenProbs | None:
        count = self._params.n_probs
        if not count:
            return None
        if self._params.post_sampling_probs:
            return _after(token, left, count)
        top = best(logits, min(count, len(logits)))
        highest = float(logits[top[0]])
        total = highest + float(np.log(np.exp(logits - logits[top[0]]).sum(dtype=np.float64)))
        pairs = tuple((int(index), float(logits[index]) - total) for index in top)
        return TokenProbs(token, float(logits[token]) - total, pairs)


def _effective(params: SamplingParams) -> tuple[str, ...]:
    """The links that can change a choice: greedy, those that always leave the best cannot."""
    greedy = params.temperature <= 0 and params.dynatemp_range <= 0 and "temperature" in params.samplers
    if greedy and params.typical_p >= 1 and params.xtc_probability <= 0:
        return tuple(name for name in params.samplers if name in ("penalties", "dry", "temperature"))
    return params.samplers


def _memory(
    name: str, params: SamplingParams, tokenizer: Tokenizer, n_ctx: int, prompt: Sequence[int]
) -> Penalties | Dry | None:
    if name == "penalties" and Penalties.wanted(params):
        return Penalties(params, n_ctx, prompt)
    if name == "dry" and Dry.wanted(params):
        return Dry(params, tokenizer, n_ctx, prompt)
    return None


def _after(token: int, left: Candidates, count: int) -> TokenProbs:
    """By what the chain left; tokens without any probability are not told."""
    probabilities = left.probabilities()
    logs = {int(left.tokens[i]): float(np.log(probabilities[i])) for i in left.best(count) if probabilities[i] > 0}
    chosen = float(np.log(probabilities[left.tokens == token][0]))
    return TokenProbs(token, chosen, tuple(logs.items()))


def _biases(
    params: SamplingParams, n_vocab: int, banned: Collection[int]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float32]]:
    pairs = [*params.logit_bias, *((token, -np.inf) for token in banned)]
    unknown = next((token for token, _ in pairs if not 0 <= token < n_vocab), None)
    if unknown is not None:
        raise SamplingError(f"'logit_bias' names token {unknown}, but the model's tokens end at {n_vocab - 1}")
    values: F64 = np.array([bias if bias == -np.inf else np.clip(bias, -LARGE, LARGE) for _, bias in pairs], np.float64)
    return np.array([token for token, _ in pairs], np.intp), values.astype(np.float32)
