"""Log-probabilities of /v1/completions: OpenAI's legacy lists, and llama-server's `content` beside them."""

import codecs
from collections import deque
from typing import Any

from pascal_engine.schedule.sequence import Delta
from pascal_engine.server.chat.logprobs import LogprobsShape
from pascal_engine.tokenizer import Tokenizer

Logprobs = dict[str, list[object]]


class TextLogprobs:
    """Follows one choice. A token is told once text from its place on is shown: so what a stop string held back or cut
    off is never told, nor is the token that ended the answer."""

    def __init__(self, tokenizer: Tokenizer, n_top: int) -> None:
        self._shape = LogprobsShape(tokenizer, n_top)
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._waiting: deque[tuple[int, dict[str, Any]]] = deque()
        self._n_decoded = self._n_shown = 0

    def take(self, delta: Delta) -> Logprobs:
        """The tokens that may be told with `delta`; `text_offset` counts characters from the choice's first one on."""
        entries: list[dict[str, Any]] = self._shape.content([delta])
        for entry in entries:
            self._waiting.append((self._n_decoded, entry))
            self._n_decoded += len(self._decoder.decode(self._tokenizer.piece(entry["id"])))
        self._n_shown += len(delta.text)
        told: Logprobs = {"text_offset": [], "token_logprobs": [], "tokens": [], "top_logprobs": [], "content": []}
        while self._waiting and self._waiting[0][0] < self._n_shown:
            offset, entry = self._waiting.popleft()
            top = {_name(other): other["logprob"] for other in entry["top_logprobs"]}
            row = (offset, entry["logprob"], _name(entry), top, entry)
            for column, value in zip(told.values(), row, strict=True):
                column.append(value)
        return told


def joined(parts: list[Logprobs]) -> Logprobs:
    """The parts of a stream as one."""
    return {name: [value for part in parts for value in part[name]] for name in parts[0]} if parts else {}


def _name(entry: dict[str, Any]) -> str:
    """A token's text, or its bytes where they are no text by themselves."""
    raw = bytes(entry["bytes"])
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in raw)
