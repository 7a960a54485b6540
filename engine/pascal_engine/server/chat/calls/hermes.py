"""JSON between tags: `<tool_call>{"name": "f", "arguments": {...}}</tool_call>`."""

import json
import re

from pascal_engine.server.chat.calls.reader import CallReader
from pascal_engine.server.chat.dialect import CLOSE_CALL
from pascal_engine.server.chat.events import ChatPart
from pascal_engine.server.chat.messages import parsed_arguments

_HEAD = re.compile(r'\s*\{\s*"name"\s*:\s*"([^"\\]*)"\s*,\s*"(?:arguments|parameters)"\s*:\s*(?=\{)')
_TAIL = re.compile(r"\s*\}?\s*")


class HermesCall(CallReader):
    """Passes the arguments through as they are written, if the name comes first; else reads the call as a whole."""

    def __init__(self, index: int, opening: str) -> None:
        super().__init__(index, opening)
        self._object = ObjectScanner()

    def finish(self) -> list[ChatPart]:
        if not self.started:
            return self._whole(self._text, "")
        self._end(_TAIL.sub("", self._text, count=1) if self._object.closed else "")
        return []

    def _advance(self) -> list[ChatPart]:
        parts: list[ChatPart] = []
        if not self.started:
            head = _HEAD.match(self._text)
            if head is None:
                body, tag, rest = self._text.partition(CLOSE_CALL)
                return self._whole(body, rest, tag) if tag else []
            self._text = self._text[head.end() :]
            parts.append(self._start(head[1]))
        if not self._object.closed:
            length = self._object.add(self._text)
            parts += self._arguments(self._text[:length])
            self._text = self._text[length:]
        if self._object.closed and CLOSE_CALL in self._text:
            self._end(self._text.partition(CLOSE_CALL)[2])
        return parts

    def _whole(self, body: str, rest: str, tag: str = "") -> list[ChatPart]:
        """The call that `body` holds with its keys in any order."""
        try:
            name, arguments = _name_and_arguments(json.loads(body))
        except (ValueError, RecursionError):
            return self._no_call(body + tag, rest)
        self._end(rest)
        return [self._start(name), *self._arguments(arguments)]


def _name_and_arguments(call: object) -> tuple[str, str]:
    """Raises `ValueError` for what is no call."""
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        raise ValueError("no name")
    given = call.get("arguments", call.get("parameters", {}))
    arguments = parsed_arguments(given)
    if not isinstance(arguments, dict):
        raise ValueError("no arguments")
    return call["name"], given if isinstance(given, str) else json.dumps(arguments, ensure_ascii=False)


class ObjectScanner:
    """Finds the end of a JSON object that comes piece by piece; the first character is its opening brace."""

    def __init__(self) -> None:
        self.closed = False
        self._depth = 0
        self._in_string = self._escaped = False

    def add(self, text: str) -> int:
        """How many characters of `text` belong to the object."""
        for position, character in enumerate(text):
            self._take(character)
            if not self._depth:
                self.closed = True
                return position + 1
        return len(text)

    def _take(self, character: str) -> None:
        if self._escaped:
            self._escaped = False
        elif self._in_string:
            self._escaped = character == "\\"
            self._in_string = character != '"'
        elif character == '"':
            self._in_string = True
        elif character in "{[":
            self._depth += 1
        elif character in "}]":
            self._depth -= 1
