"""Probabilities of tokens in OpenAI's shape."""

from collections.abc import Iterable

from pascal_engine.sampling.params import TokenProbs
from pascal_engine.schedule.sequence import Delta
from pascal_engine.tokenizer import Tokenizer

# What stands for a probability of 0, whose logarithm JSON cannot hold.
_LEAST = -9999.0


class LogprobsShape:
    """Writes what `logprobs` of a choice holds; of each token's alternatives at most `most`."""

    def __init__(self, tokenizer: Tokenizer, most: int) -> None:
        self._tokenizer, self._most = tokenizer, most

    def content(self, deltas: Iterable[Delta]) -> list[dict[str, object]]:
        """One entry for each token."""
        return [self._entry(probs) for delta in deltas for probs in delta.probs]

    def _entry(self, probs: TokenProbs) -> dict[str, object]:
        top = [self._token(token, logprob) for token, logprob in probs.top[: self._most]]
        return self._token(probs.token, probs.logprob) | {"top_logprobs": top}

    def _token(self, token: int, logprob: float) -> dict[str, object]:
        raw = self._tokenizer.token_bytes(token)
        text = raw.decode("utf-8", "replace")
        return {"id": token, "token": text, "bytes": list(raw), "logprob": max(logprob, _LEAST)}
