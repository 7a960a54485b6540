"""The links of the chain that look back: penalties for repeated tokens, and DRY for repeated sequences."""

import math
from collections import deque
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pascal_engine.sampling.candidates import LARGE, Candidates
from pascal_engine.sampling.params import SamplingParams
from pascal_engine.tokenizer import Tokenizer

_FLOAT_MAX_LOG = 88.7228391
_LONGEST_BREAKER = 40


class Penalties:
    """Lowers the logits of tokens that stand among the last `repeat_last_n`."""

    def __init__(self, params: SamplingParams, n_vocab: int, n_ctx: int, prompt: Sequence[int]) -> None:
        size = n_ctx if params.repeat_last_n < 0 else params.repeat_last_n
        self._params = params
        self._counts = np.zeros(n_vocab, np.int32)
        self._window: deque[int] = deque(prompt[-size:], size)
        np.add.at(self._counts, list(self._window), 1)

    @staticmethod
    def wanted(params: SamplingParams) -> bool:
        idle = params.repeat_penalty == 1 and params.frequency_penalty == 0 and params.presence_penalty == 0
        return params.repeat_last_n != 0 and not idle

    def accept(self, token: int) -> None:
        """`token` follows."""
        if len(self._window) == self._window.maxlen:
            self._counts[self._window[0]] -= 1
        self._window.append(token)
        self._counts[token] += 1

    def apply(self, candidates: Candidates) -> None:
        """Divides positive logits by `repeat_penalty` and multiplies others; then takes off `frequency_penalty` for
        each occurrence and `presence_penalty` once."""
        params, counts = self._params, self._counts[candidates.tokens]
        seen = np.flatnonzero(counts)
        scores = candidates.scores.copy()
        old = scores[seen].astype(np.float64)
        new = np.where(old <= 0, old * params.repeat_penalty, old / params.repeat_penalty)
        new -= counts[seen] * params.frequency_penalty + params.presence_penalty
        scores[seen] = np.where(old == -np.inf, old, np.clip(new, -LARGE, LARGE))
        candidates.rescore(scores)


class Dry:
    """Lowers the logits of tokens that would go on with a sequence which stood in the text before.

    For each place in the last `dry_penalty_last_n` tokens it is known how many tokens up to there equal the text's
    last ones; a new token either makes such a match longer or ends it. A breaker ends all of them: whatever came
    before the last breaker in the text does not count.
    """

    def __init__(self, params: SamplingParams, tokenizer: Tokenizer, n_ctx: int, prompt: Sequence[int]) -> None:
        self._params = params
        self._size = n_ctx if params.dry_penalty_last_n < 0 else params.dry_penalty_last_n
        self._tokenizer = tokenizer
        breakers = (text.encode("utf-8", "replace")[:_LONGEST_BREAKER] for text in params.dry_sequence_breakers)
        self._breakers = tuple(filter(None, breakers))
        self._tokens: npt.NDArray[np.int32] = np.array(prompt[-self._size :], np.int32)
        self._matches = _matches(self._tokens.tolist())
        self._tail = b""
        self._since_break = 0
        for token in self._tokens.tolist():
            self._notice_breakers(token)

    @staticmethod
    def wanted(params: SamplingParams) -> bool:
        return params.dry_multiplier != 0 and params.dry_base >= 1 and params.dry_penalty_last_n != 0

    def accept(self, token: int) -> None:
        """`token` follows."""
        self._notice_breakers(token)
        longer = np.concatenate([[0], self._matches]) + 1
        self._matches = np.where(self._tokens == token, longer, 0)
        self._tokens = np.append(self._tokens, np.int32(token))
        if len(self._tokens) > self._size:
            self._tokens, self._matches = self._tokens[1:], self._matches[1:]

    def apply(self, candidates: Candidates) -> None:
        """Takes off `dry_multiplier` * `dry_base` ** (length of the match - `dry_allowed_length`)."""
        params = self._params
        allowed = params.dry_allowed_length
        if len(self._tokens) <= allowed or self._since_break < allowed:
            return
        within = np.minimum(self._matches, np.arange(1, len(self._matches) + 1))
        lengths = np.minimum(within, self._since_break)
        repeated = np.flatnonzero(lengths >= allowed)
        longest: dict[int, int] = {}
        for token, length in zip(self._tokens[repeated + 1].tolist(), lengths[repeated].tolist(), strict=True):
            longest[token] = max(length, longest.get(token, 0))
        if longest:
            self._penalise(candidates, longest)

    def _penalise(self, candidates: Candidates, longest: dict[int, int]) -> None:
        params = self._params
        most = int(_FLOAT_MAX_LOG / math.log(params.dry_base)) if params.dry_base > 1.000001 else None
        penalties = np.zeros(self._tokenizer.n_vocab)
        for token, length in longest.items():
            excess = length - params.dry_allowed_length
            if not any(breaker in self._tokenizer.token_bytes(token) for breaker in self._breakers):
                exponent = excess if most is None else min(excess, most)
                penalties[token] = np.clip(params.dry_multiplier * params.dry_base**exponent, -LARGE, LARGE)
        candidates.rescore(candidates.scores - penalties[candidates.tokens])

    def _notice_breakers(self, token: int) -> None:
        new = self._tokenizer.token_bytes(token)
        text = self._tail + new
        found = any(text.find(breaker, max(len(self._tail) - len(breaker) + 1, 0)) >= 0 for breaker in self._breakers)
        self._since_break = 0 if found else self._since_break + 1
        self._tail = text[-_LONGEST_BREAKER:]


def _matches(tokens: list[int]) -> npt.NDArray[np.int64]:
    """For each place but the last: how many tokens up to there equal the last ones (the Z-function, backwards)."""
    backwards = tokens[::-1]
    lengths = [0] * len(tokens)
    left = right = 0
    for k in range(1, len(tokens)):
        n = min(lengths[k - left], right - k) if k < right else 0
        while k + n < len(tokens) and backwards[n] == backwards[k + n]:
            n += 1
        lengths[k] = n
        if k + n > right:
            left, right = k, k + n
    return np.array(lengths[1:][::-1], np.int64)
