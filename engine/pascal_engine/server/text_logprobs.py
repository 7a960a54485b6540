"""Log-probabilities in the shape of OpenAI's legacy completions."""

import codecs
from collections import deque

from pascal_engine.sampling.params import TokenProbs
from pascal_engine.schedule.sequence import Delta
from pascal_engine.tokenizer import Tokenizer

Logprobs = dict[str, list[object]]


class TextLogprobs:
    """Follows one choice. A token is told once text from its place on is shown: so what a stop string held back or cut
    off is never told, nor is the token that ended the answer."""

    def __init__(self, tokenizer: Tokenizer, n_top: int) -> None:
        self._tokenizer, self._n_top = tokenizer, n_top
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._waiting: deque[tuple[int, TokenProbs]] = deque()
        self._n_decoded = self._n_shown = 0

    def take(self, delta: Delta) -> Logprobs:
        """The tokens that may be told with `delta`; `text_offset` counts characters from the choice's first one on."""
        for probs in delta.probs:
            self._waiting.append((self._n_decoded, probs))
            self._n_decoded += len(self._decoder.decode(self._tokenizer.piece(probs.token)))
        self._n_shown += len(delta.text)
        told: Logprobs = {"text_offset": [], "token_logprobs": [], "tokens": [], "top_logprobs": []}
        while self._waiting and self._waiting[0][0] < self._n_shown:
            offset, probs = self._waiting.popleft()
            top = {self._name(token): logprob for token, logprob in probs.top[: self._n_top]}
            row = (offset, probs.logprob, self._name(probs.token), top)
            for column, value in zip(told.values(), row, strict=True):
                column.append(value)
        return told

    def _name(self, token: int) -> str:
        """A token's text, or its bytes where they are no text by themselves."""
        piece = self._tokenizer.token_bytes(token)
        try:
            return piece.decode()
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in piece)


def joined(parts: list[Logprobs]) -> Logprobs:
    """The parts of a stream as one."""
    return {name: [value for part in parts for value in part[name]] for name in parts[0]} if parts else {}
