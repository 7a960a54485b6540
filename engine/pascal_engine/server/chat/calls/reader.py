"""What the readers of calls have in common."""

import uuid
from abc import ABC, abstractmethod

from pascal_engine.server.chat.events import ChatPart, ContentText, ToolCallArguments, ToolCallStart


class CallReader(ABC):
    """Reads one call, number `index` of the answer, from behind its `opening` text.

    Until a name is certain nothing is told. What turns out to be no call is content, as it stands; once a call has
    begun it stays one, whatever its arguments look like. `rest` is the text behind the call, when `done`.
    """

    def __init__(self, index: int, opening: str) -> None:
        self.started = self.done = False
        self.rest = ""
        self._index = index
        self._opening = opening
        self._text = ""

    def add(self, text: str) -> list[ChatPart]:
        """What has become certain with `text`."""
        self._text += text
        return self._advance()

    @abstractmethod
    def finish(self) -> list[ChatPart]:
        """What was kept back, once no more can follow."""

    @abstractmethod
    def _advance(self) -> list[ChatPart]:
        """Takes from `self._text` what it can."""

    def _start(self, name: str) -> ChatPart:
        self.started = True
        return ToolCallStart(self._index, f"call_{uuid.uuid4().hex[:24]}", name)

    def _arguments(self, text: str) -> list[ChatPart]:
        return [ToolCallArguments(self._index, text)] if text else []

    def _end(self, rest: str) -> None:
        self.done, self.rest, self._text = True, rest, ""

    def _no_call(self, text: str, rest: str = "") -> list[ChatPart]:
        """`text` looked like a call and is none."""
        self._end(rest)
        return [ContentText(self._opening + text)]
