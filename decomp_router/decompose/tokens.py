"""Prompt to token ids, each with its place in the text and its place on the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

Ids = npt.NDArray[np.int64]

INLINE, LINE_START, PARAGRAPH_START, EARLIER_MESSAGE = range(4)
"""Layout ids. The tokenizer drops line breaks, so each token carries whether one stands before it."""
LAYOUTS = 4
WINDOW = 512
"""Tokens that the network reads at once."""
CONTEXT_TOKENS = 96
CONTEXT_CHARACTERS = 2_000
"""More than the last tokens need; what is before is not even tokenised."""
BOS, PAD, EOS, UNKNOWN = range(4)


@dataclass(frozen=True)
class Encoding:
    """What the network reads: `<s> prompt </s>`, or `<s> prompt </s> </s> earlier messages </s>`.

    ids, layout: int64 [L]. spans: int64 [prompt tokens, 2], code points of the prompt (end exclusive,
    no outer blanks); prompt token i is at position i + 1.
    """

    ids: Ids
    layout: Ids
    spans: Ids

    def __post_init__(self) -> None:
        assert self.ids.shape == self.layout.shape
        assert len(self.spans) + 2 <= len(self.ids)


class PromptTokenizer:
    """The network's own tokenizer."""

    def __init__(self, path: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(path))
        # A user's literal "<s>" stays text.
        self._tokenizer.encode_special_tokens = True

    def encode(self, prompt: str, context: str = "") -> Encoding:
        """A prompt with the text of the messages before it, of which the last tokens are kept."""
        text = self._tokenizer.encode(prompt, add_special_tokens=False)
        spans, ids = _visible(prompt, text.offsets, text.ids)
        earlier = self._earlier(context, min(CONTEXT_TOKENS, WINDOW - len(ids) - 4))
        tail = [EOS, *earlier, EOS] if earlier else []
        layout = [INLINE, *_layout(prompt, spans), INLINE, *[EARLIER_MESSAGE] * len(tail)]
        return Encoding(
            np.asarray([BOS, *ids, EOS, *tail], np.int64),
            np.asarray(layout, np.int64),
            np.asarray(spans, np.int64).reshape(-1, 2),
        )

    def _earlier(self, context: str, room: int) -> list[int]:
        """The last `room` tokens of the conversation before; none where the prompt fills the window."""
        if room <= 0:
            return []
        ids: list[int] = self._tokenizer.encode(context, add_special_tokens=False).ids
        return ids[-room:]


def context_of(messages: Sequence[tuple[str, str]]) -> str:
    """The end of the (role, content) messages before a prompt, as one text."""
    return "\n".join(content for _, content in messages)[-CONTEXT_CHARACTERS:]


def _visible(
    prompt: str, offsets: Sequence[tuple[int, int]], ids: Sequence[int]
) -> tuple[list[tuple[int, int]], list[int]]:
    """Tokens that stand for something other than blanks, with their spans shrunk to it."""
    kept: list[tuple[tuple[int, int], int]] = []
    for (start, end), token in zip(offsets, ids, strict=True):
        piece = prompt[start:end]
        if bare := piece.strip():
            start += piece.index(bare)
            kept.append(((start, start + len(bare)), token))
    return [span for span, _ in kept], [token for _, token in kept]


def _layout(prompt: str, spans: Sequence[tuple[int, int]]) -> list[int]:
    previous, layout = 0, []
    for start, end in spans:
        breaks = prompt.count("\n", previous, start)
        layout.append(INLINE if not breaks else LINE_START if breaks == 1 else PARAGRAPH_START)
        previous = end
    return layout
