"""The links of the chain that look back: penalties for repeated tokens, and DRY for repeated sequences."""

import math
from collections import Counter, deque
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pascal_engine.sampling.candidates import F64, Candidates, Indices
from pascal_engine.sampling.params import SamplingParams
from pascal_engine.tokenizer import Tokenizer

_FLOAT_MAX_LOG = 88.7228391
_LONGEST_BREAKER = 40


class Penalties:
    """Lowers the logits of tokens that stand among the last `repeat_last_n`."""

    def __init__(self, params: SamplingParams, n_ctx: int, prompt: Sequence[int]) -> None:
        size = n_ctx if params.repeat_last_n < 0 else params.repeat_last_n
        self._params = params
        self._window: deque[int] = deque(prompt[-size:], size)
        self._counts = Counter(self._window)

    @staticmethod
    def wanted(params: SamplingParams) -> bool:
        idle = params.repeat_penalty == 1 and params.frequency_penalty == 0 and params.presence_penalty == 0
        return params.repeat_last_n != 0 and not idle

    def accept(self, token: int) -> None:
        """`token` follows."""
        if len(self._window) == self._window.maxlen:
            oldest = self._window[0]
            self._counts[oldest] -= 1
            if not self._counts[oldest]:
                del self._counts[oldest]
        self._window.append(token)
        self._counts[token] += 1

    def apply(self, candidates: Candidates) -> None:
        """Divides positive logits by `repeat_penalty` and multiplies others; then takes off `frequency_penalty` for
        each occurrence and `presence_penalty` once."""
        params = self._params
        counts = np.fromiter(self._counts.values(), np.float64)

        def lower(scores: F64, which: Indices) -> F64:
            scores = np.where(scores <= 0, scores * params.repeat_penalty, scores / params.repeat_penalty)
            lowered: F64 = scores - (counts[which] * params.frequency_penalty + params.presence_penalty)
            return lowered

        candidates.adjust(np.fromiter(self._counts, np.intp), lower)


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
        pieces = [tokenizer.token_bytes(token) for token in self._tokens.tolist()]
        text = b"".join(pieces)
        self._tail = text[-_LONGEST_BREAKER:]
        self._since_break = len(pieces)
        broken_at = max((_end(text, breaker) for breaker in self._breakers), default=0)
        if broken_at:
            self._since_break -= 1 + int(np.searchsorted(np.cumsum([*map(len, pieces)]), broken_at))

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
        most = int(_FLOAT_MAX_LOG / math.log(params.dry_base)) if params.dry_base > 1.000001 else self._size
        penalties = {
            token: params.dry_multiplier * params.dry_base ** min(length - params.dry_allowed_length, most)
            for token, length in longest.items()
            if not any(breaker in self._tokenizer.token_bytes(token) for breaker in self._breakers)
        }
        amounts = np.fromiter(penalties.values(), np.float64)
        candidates.adjust(np.fromiter(penalties, np.intp), lambda scores, which: scores - amounts[which])

    def _notice_breakers(self, token: int) -> None:
        new = self._tokenizer.token_bytes(token)
        text = self._tail + new
        found = any(text.find(breaker, max(len(self._tail) - len(breaker) + 1, 0)) >= 0 for breaker in self._breakers)
        self._since_break = 0 if found else self._since_break + 1
        self._tail = text[-_LONGEST_BREAKER:]


def _end(text: bytes, breaker: bytes) -> int:
    """Where the last `breaker` in `text` ends; 0 without one."""
    start = text.rfind(breaker)
    return 0 if start < 0 else start + len(breaker)


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
