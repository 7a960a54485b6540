"""What one branch has said so far; the branch writes it while the merge reads it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

CONTENT = "content"


@dataclass(frozen=True)
class Piece:
    """A bit of an answer as it came: `field` is "content" or one of the names that engines give to reasoning."""

    field: str
    text: str
    tokens: int = 1


class Section:
    """One sub-task's answer, growing; has one reader."""

    def __init__(self) -> None:
        self.read = False
        self.clear()
        self._changed = asyncio.Event()
        self.done = asyncio.Event()

    def clear(self) -> None:
        """Forgets a failed attempt."""
        assert not self.read, "what was read cannot be taken back"
        self.pieces: list[Piece] = []
        self.head: dict[str, Any] = {}
        self.usage: dict[str, int] = {}
        self.finish: str | None = None

    def add(self, piece: Piece) -> None:
        """Says a little more."""
        self.pieces.append(piece)
        self._changed.set()

    def close(self) -> None:
        """Says that nothing more comes."""
        self.done.set()
        self._changed.set()

    @property
    def text(self) -> str:
        """The answer so far, without reasoning."""
        return "".join(piece.text for piece in self.pieces if piece.field == CONTENT)

    @property
    def tokens(self) -> int:
        """Tokens so far, reasoning included: the engine's own count where it gave one."""
        return self.usage.get("completion_tokens") or sum(piece.tokens for piece in self.pieces)

    @property
    def uncounted(self) -> int:
        """Tokens that the engine reports beyond those seen one by one (several in a chunk, say)."""
        return max(0, self.tokens - sum(piece.tokens for piece in self.pieces))

    @property
    def reasoned(self) -> bool:
        """Whether any reasoning came."""
        return any(piece.field != CONTENT for piece in self.pieces)

    async def until(self, ready: Callable[[], bool]) -> None:
        """Waits for a condition on what has been said."""
        while not ready():
            self._changed.clear()
            await self._changed.wait()

    async def reasoning(self) -> AsyncIterator[Piece]:
        """The reasoning, live, up to the first word of the answer."""
        async for piece in self._live():
            if piece.field == CONTENT:
                return
            self.read = True
            yield piece

    async def content(self) -> AsyncIterator[Piece]:
        """The answer, live. Reasoning that comes in the midst of it has no place left, and stays out."""
        async for piece in self._live():
            if piece.field == CONTENT:
                self.read = True
                yield piece

    def _goes_beyond(self, place: int) -> bool:
        return len(self.pieces) > place or self.done.is_set()

    async def _live(self) -> AsyncIterator[Piece]:
        place = 0
        while True:
            await self.until(partial(self._goes_beyond, place))
            if place == len(self.pieces):
                return
            yield self.pieces[place]
            place += 1
