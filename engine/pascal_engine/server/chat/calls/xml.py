"""The tags of Qwen3-Coder: `<function=f><parameter=key>value</parameter></function>`."""

import json
import re
from collections.abc import Mapping

from pascal_engine.server.chat.calls.reader import CallReader
from pascal_engine.server.chat.calls.types import Types, json_text, types_of
from pascal_engine.server.chat.dialect import CLOSE_CALL
from pascal_engine.server.chat.events import ChatPart
from pascal_engine.server.chat.scan import unsure_end
from pascal_engine.server.chat.schema import Function

_HEAD = re.compile(r"\s*(?:<function=)?([^<>\s]+)>")
_NEXT = re.compile(r"\s*(?:<parameter=([^<>\n]+)>\n?|(</function>)\s*)")
_CLOSE = "</parameter>"
_VALUE_END = re.compile(r"\n?</parameter>(?=\s*(?:<parameter=|</function>))")
_FOLLOWERS = ("<parameter=", "</function>")


class XmlCall(CallReader):
    """Turns the parameters into JSON, each by its type in the function's schema; texts come as they are written."""

    def __init__(self, index: int, opening: str, functions: Mapping[str, Function]) -> None:
        super().__init__(index, opening)
        self._functions = functions
        self._needs_tag = "<function=" not in opening
        self._schema: Mapping[str, object] = {}
        self._n_parameters = 0
        self._types: Types | None = None
        self._in_text = self._closed = False

    def finish(self) -> list[ChatPart]:
        if not self.started:
            return self._no_call(self._text)
        self._end(self._text if self._closed else "")
        return []

    def _advance(self) -> list[ChatPart]:
        parts: list[ChatPart] = []
        if not self.started:
            parts += self._head()
        while self.started and not self._closed:
            before = len(self._text)
            parts += self._between() if self._types is None else self._value(self._types)
            if len(self._text) == before:
                break
        if self._closed and not self.done:
            self._tail()
        return parts

    def _head(self) -> list[ChatPart]:
        head = _HEAD.match(self._text)
        if head is not None and (not self._needs_tag or "<function=" in head[0]):
            self._text = self._text[head.end() :]
            function = self._functions.get(head[1])
            self._schema = {} if function is None else function.schema_of_arguments
            return [self._start(head[1])]
        body, tag, rest = self._text.partition(CLOSE_CALL)
        return self._no_call(body + tag, rest) if tag else []

    def _between(self) -> list[ChatPart]:
        """Between parameters: the next one begins, or the function ends."""
        found = _NEXT.match(self._text)
        if found is None:
            return self._give_up() if self._is_hopeless() else []
        if found.end() == len(self._text) and found[1] and not found[0].endswith("\n"):
            return []  # a line feed may follow, which is not part of the value
        self._text = self._text[found.end() :]
        if found[2]:
            self._closed = True
            return self._arguments("}" if self._n_parameters else "{}")
        key = json.dumps(found[1], ensure_ascii=False)
        separator = ", " if self._n_parameters else "{"
        self._n_parameters += 1
        self._types = types_of(self._schema, found[1])
        self._in_text = self._types.only_text
        return self._arguments(f"{separator}{key}: " + ('"' if self._in_text else ""))

    def _value(self, types: Types) -> list[ChatPart]:
        """Inside a parameter's value."""
        end = _VALUE_END.search(self._text)
        if end is None:
            if not self._in_text:
                return []
            safe = _certain(self._text)
            shown, self._text = self._text[:safe], self._text[safe:]
            return self._arguments(_escaped(shown))
        value, self._text = self._text[: end.start()], self._text[end.end() :]
        self._types = None
        return self._arguments(_escaped(value) + '"' if self._in_text else json_text(value, types))

    def _is_hopeless(self) -> bool:
        text = self._text.lstrip()
        return not any(follower.startswith(text[: len(follower)]) for follower in _FOLLOWERS)

    def _give_up(self) -> list[ChatPart]:
        """Something else than parameters follows: the call ends here."""
        self._closed = True
        return self._arguments("}" if self._n_parameters else "{}")

    def _tail(self) -> None:
        text = self._text.lstrip()
        if text.startswith(CLOSE_CALL):
            self._end(text.removeprefix(CLOSE_CALL))
        elif not CLOSE_CALL.startswith(text):
            self._end(text)


def _certain(text: str) -> int:
    """How many characters of a value that did not end yet are part of it for certain."""
    start = text.rfind(_CLOSE)
    if start >= 0:
        behind = text[start + len(_CLOSE) :].lstrip()
        if any(follower.startswith(behind) for follower in _FOLLOWERS):
            return start - text[:start].endswith("\n")
    return len(text) - unsure_end(text, ("\n" + _CLOSE, _CLOSE))


def _escaped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]
