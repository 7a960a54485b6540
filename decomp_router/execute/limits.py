"""What ends a merged answer before its last section: the token limit and the stop strings."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any, Literal

from decomp_router.execute.section import CONTENT, Piece
from decomp_router.gate.eligibility import token_limit

Finish = Literal["stop", "length"]


class Limits:
    """Cuts a stream of pieces; `finish` says why, or is None if nothing was cut."""

    def __init__(self, max_tokens: int | None, stops: tuple[str, ...]) -> None:
        self.finish: Finish | None = None
        self._left = max_tokens
        self._stops = tuple(stop for stop in stops if stop)
        self._tail = ""

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Limits:
        """The limits that a request asks for."""
        stop = body.get("stop") or []
        return cls(token_limit(body), (stop,) if isinstance(stop, str) else tuple(stop))

    async def apply(self, pieces: AsyncIterator[Piece]) -> AsyncGenerator[Piece, None]:
        """The pieces within the limits; what may be the start of a stop string is held back."""
        async for piece in pieces:
            if not self._affords(piece):
                break
            text = self._released(piece.text) if piece.field == CONTENT else piece.text
            if text:
                yield Piece(piece.field, text, piece.tokens)
            if self.finish:
                return
        if self._tail:
            yield Piece(CONTENT, self._tail, 0)

    def _affords(self, piece: Piece) -> bool:
        if self._left is None:
            return True
        if piece.text and piece.tokens > self._left:
            self.finish = "length"
            return False
        self._left -= piece.tokens
        return True

    def _released(self, text: str) -> str:
        text, self._tail = self._tail + text, ""
        found = [place for stop in self._stops if (place := text.find(stop)) >= 0]
        if found:
            self.finish = "stop"
            return text[: min(found)]
        held = max((_begun(text, stop) for stop in self._stops), default=0)
        self._tail = text[len(text) - held :]
        return text[: len(text) - held]


def _begun(text: str, stop: str) -> int:
    """How many characters at the end of a text could be the start of a stop string."""
    longest = min(len(stop) - 1, len(text))
    return next((size for size in range(longest, 0, -1) if text.endswith(stop[:size])), 0)
