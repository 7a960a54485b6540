"""What a model writes, taken apart while it is being written: thoughts, content, calls of functions."""

from collections.abc import Sequence

from pascal_engine.server.chat.calls import CallReader, HermesCall, XmlCall
from pascal_engine.server.chat.dialect import CLOSE_THOUGHT, OPEN_CALL, OPEN_THOUGHT, Dialect, Thinking
from pascal_engine.server.chat.events import ChatPart, ContentText, ReasoningText
from pascal_engine.server.chat.scan import TextScanner
from pascal_engine.server.chat.schema import Function


class OutputParser:
    """Fed with text as it comes. Where there are no `functions`, calls are content like any other text."""

    def __init__(self, dialect: Dialect, thinking: Thinking, functions: Sequence[Function]) -> None:
        self._reasoning = ReasoningReader(thinking)
        self._content = ContentReader(dialect, functions)

    @property
    def n_calls(self) -> int:
        """How many calls of functions have begun."""
        return self._content.n_calls

    def add(self, text: str) -> list[ChatPart]:
        """What has become certain with `text`."""
        parts, rest = self._reasoning.add(text)
        return [*parts, *self._content.add(rest)]

    def finish(self) -> list[ChatPart]:
        """What was kept back, once no more can follow."""
        parts, rest = self._reasoning.finish()
        return [*parts, *self._content.add(rest), *self._content.finish()]


class ReasoningReader:
    """Splits off the thought at the beginning of an answer, without the white space around it."""

    def __init__(self, thinking: Thinking) -> None:
        self._state = thinking
        self._begun = False
        self._scanner = TextScanner((CLOSE_THOUGHT,), hold_space=True)
        self._held = ""
        self._skip_space = False

    def add(self, text: str) -> tuple[list[ChatPart], str]:
        """The thought in `text`, and the text that is not part of one."""
        if self._state == "may":
            self._held += text
            begin = self._held.lstrip()
            if begin.startswith(OPEN_THOUGHT):
                self._state, text = "open", begin.removeprefix(OPEN_THOUGHT)
            elif OPEN_THOUGHT.startswith(begin):
                return [], ""
            else:
                self._state, text = "no", self._held
        if self._state == "no":
            return [], self._after_thought(text)
        shown, found = self._scanner.add(text)
        if found is None:
            return self._thought(shown), ""
        parts = self._thought(shown.rstrip())
        self._state, self._skip_space = "no", True
        return parts, self._after_thought(self._scanner.rest())

    def finish(self) -> tuple[list[ChatPart], str]:
        """A thought that did not end, or the beginning of an answer that could have been one."""
        if self._state == "open":
            return self._thought(self._scanner.rest().rstrip()), ""
        return [], self._held if self._state == "may" else ""

    def _thought(self, text: str) -> list[ChatPart]:
        text = text if self._begun else text.lstrip()
        self._begun = self._begun or bool(text)
        return [ReasoningText(text)] if text else []

    def _after_thought(self, text: str) -> str:
        if self._skip_space:
            text = text.lstrip()
            self._skip_space = not text
        return text


class ContentReader:
    """Splits calls of functions from the content before and after them."""

    def __init__(self, dialect: Dialect, functions: Sequence[Function]) -> None:
        self._functions = {function.name: function for function in functions}
        self._xml = dialect.tools == "xml"
        self._scanner = TextScanner((OPEN_CALL, "<function=") if self._xml else (OPEN_CALL,), hold_space=True)
        self._call: CallReader | None = None
        self._space_before = ""
        self._skip_space = self._shown = False
        self.n_calls = 0

    def add(self, text: str) -> list[ChatPart]:
        if not self._functions:
            return [ContentText(text)] if text else []
        parts: list[ChatPart] = []
        while text or self._call is None:
            if self._call is None:
                shown, trigger = self._scanner.add(text)
                parts += self._text(shown if trigger is None else shown.rstrip())
                if trigger is None:
                    break
                self._space_before = shown[len(shown.rstrip()) :]
                self._call = self._open(self._space_before + trigger)
                text = self._scanner.rest()
            else:
                parts += self._call.add(text)
                text = self._close() if self._call.done else ""
        return parts

    def finish(self) -> list[ChatPart]:
        if self._call is None:
            rest = self._scanner.rest()
            return self._text(rest.rstrip() if self._skip_space or self.n_calls else rest)
        parts = self._call.finish()
        return [*parts, *self._text(self._close())]

    def _open(self, opening: str) -> CallReader:
        return XmlCall(self.n_calls, opening, self._functions) if self._xml else HermesCall(self.n_calls, opening)

    def _close(self) -> str:
        """Leaves the call; the text behind it."""
        assert self._call is not None
        self.n_calls += self._call.started
        self._skip_space = self._call.started
        rest, self._call = self._call.rest, None
        return rest

    def _text(self, text: str) -> list[ChatPart]:
        """Content; that behind a call stands as far from that before it as the call did."""
        if self._skip_space and (text := text.lstrip()):
            self._skip_space = False
            text = (self._space_before if self._shown else "") + text
        self._shown = self._shown or bool(text)
        return [ContentText(text)] if text else []
