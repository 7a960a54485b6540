"""The merged answer in the OpenAI shape, as a stream of chunks or as one object."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from decomp_router.execute.limits import Finish
from decomp_router.execute.section import CONTENT, Piece, Section
from decomp_router.execute.sse import DONE, frame


@dataclass(frozen=True)
class Ending:
    """How a merged answer ended, and what it took."""

    finish: Finish
    usage: dict[str, Any]


def usage_of(sections: Iterable[Section]) -> dict[str, Any]:
    """All branches summed: tokens prefilled, of which cached, and tokens generated."""
    read = list(sections)
    prompt = sum(section.usage.get("prompt_tokens", 0) for section in read)
    generated = sum(section.tokens for section in read)
    usage: dict[str, Any] = {
        "prompt_tokens": prompt,
        "completion_tokens": generated,
        "total_tokens": prompt + generated,
    }
    cached = [section.usage["cached_tokens"] for section in read if "cached_tokens" in section.usage]
    return {**usage, "prompt_tokens_details": {"cached_tokens": sum(cached)}} if cached else usage


@dataclass(frozen=True)
class Chunks:
    """Frames of a streamed answer; `head` holds its id, model and the like."""

    head: dict[str, Any]

    def opening(self) -> bytes:
        """The one chunk that names the role."""
        return self._chunk({"role": "assistant", "content": ""})

    def piece(self, piece: Piece) -> bytes:
        """A bit of the answer."""
        return self._chunk({piece.field: piece.text})

    def closing(self, ending: Ending, *, usage: bool) -> bytes:
        """The finish reason, the usage if it is wanted, and the end of the stream."""
        frames = [self._chunk({}, ending.finish)]
        if usage:
            frames.append(self._frame({"choices": [], "usage": ending.usage}))
        return b"".join([*frames, frame(DONE)])

    def _chunk(self, delta: dict[str, str], finish: Finish | None = None) -> bytes:
        return self._frame({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    def _frame(self, fields: dict[str, Any]) -> bytes:
        chunk = {**self.head, "object": "chat.completion.chunk", **fields}
        return frame(json.dumps(chunk, separators=(",", ":")).encode())


def completion(head: dict[str, Any], pieces: Iterable[Piece], ending: Ending) -> dict[str, Any]:
    """The answer as one object."""
    texts = {"role": "assistant", CONTENT: ""}
    for piece in pieces:
        texts[piece.field] = texts.get(piece.field, "") + piece.text
    choice = {"index": 0, "message": texts, "finish_reason": ending.finish}
    return {**head, "object": "chat.completion", "choices": [choice], "usage": ending.usage}
