"""Reads llama.cpp's grammar notation (GBNF, grammars/README.md there)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

_DEEPEST = 50
_MOST_REPEATS = 2000
_SPACE = re.compile(r"(?:[ \t]|#[^\r\n]*)*")
_SPACE_AND_LINES = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*)*")
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_REPEAT = re.compile(r"\{\s*(\d{1,9})\s*(?:(,)\s*(\d{1,9})?\s*)?\}")
_CHARACTER = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([trn\\\"\[\]-]))|([^\\])", re.S)
_ESCAPES = {"t": "\t", "r": "\r", "n": "\n"}


class GbnfError(Exception):
    """The grammar is not well formed; the message is half a sentence."""


@dataclass(frozen=True)
class Text:
    """A part of a regular expression."""

    regex: str


@dataclass(frozen=True)
class Ref:
    """A rule by its name."""

    name: str


@dataclass(frozen=True)
class Series:
    """One after the other."""

    items: tuple["Node", ...]


@dataclass(frozen=True)
class Choice:
    """One of them."""

    items: tuple["Node", ...]


@dataclass(frozen=True)
class Repeat:
    """`times` is a count as both notations write it: a sign, or numbers in braces."""

    item: "Node"
    times: str


Node: TypeAlias = Text | Ref | Series | Choice | Repeat


def refs(node: Node) -> Iterator[str]:
    """Names of the rules that `node` uses."""
    if isinstance(node, Ref):
        yield node.name
    elif isinstance(node, Repeat):
        yield from refs(node.item)
    elif isinstance(node, Series | Choice):
        for item in node.items:
            yield from refs(item)


class Parser:
    """Reads rules by recursive descent."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def rules(self) -> dict[str, Node]:
        """All of them by name. Raises `GbnfError`."""
        rules: dict[str, Node] = {}
        self._skip(_SPACE_AND_LINES)
        while self._at < len(self._text):
            name = self._match(_NAME, "the name of a rule").group()
            self._skip(_SPACE)
            self._expect("::=")
            self._skip(_SPACE_AND_LINES)
            rules[name] = self._choice(_SPACE)
            if self._at < len(self._text) and self._text[self._at] not in "\r\n":
                raise self._error("the end of the line")
            self._skip(_SPACE_AND_LINES)
        return rules

    def _choice(self, space: re.Pattern[str]) -> Node:
        items = [self._series(space)]
        while self._text[self._at : self._at + 1] == "|":
            self._at += 1
            self._skip(_SPACE_AND_LINES)
            items.append(self._series(space))
        return items[0] if len(items) == 1 else Choice(tuple(items))

    def _series(self, space: re.Pattern[str]) -> Node:
        items: list[Node] = []
        while (item := self._item()) is not None:
            self._skip(space)
            repeats = 0
            while (times := self._times()) is not None:
                item = Repeat(item, times)
                repeats += 1
                self._skip(space)
            if repeats > _DEEPEST:
                raise GbnfError(f"it repeats one thing in more than {_DEEPEST} ways at once")
            items.append(item)
        return items[0] if len(items) == 1 else Series(tuple(items))

    def _item(self) -> Node | None:
        start = self._text[self._at : self._at + 1]
        if start == '"':
            return Text("".join(f"\\u{{{code:x}}}" for code in self._characters('"')))
        if start == "[":
            return self._class()
        if start == "(":
            return self._group()
        if start == ".":
            self._at += 1
            return Text(r"[\u{0}-\u{10ffff}]")
        if start and start in "<!":
            raise GbnfError("it names tokens, which is not supported; write their text")
        name = _NAME.match(self._text, self._at)
        if name is None:
            return None
        self._at = name.end()
        return Ref(name.group())

    def _group(self) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise GbnfError(f"its parentheses are more than {_DEEPEST} deep")
        self._at += 1
        self._skip(_SPACE_AND_LINES)
        node = self._choice(_SPACE_AND_LINES)
        self._expect(")")
        self._depth -= 1
        return node

    def _class(self) -> Text:
        negated = self._text[self._at + 1 : self._at + 2] == "^"
        self._at += negated
        parts = [f"\\u{{{code:x}}}" if code >= 0 else "-" for code in self._characters("]")]
        if not parts:
            raise self._error("a character between '[' and ']'")
        return Text(f"[{'^' if negated else ''}{''.join(parts)}]")

    def _characters(self, end: str) -> Iterator[int]:
        """Code points up to `end`; -1 for the dash of a range."""
        self._at += 1
        after_one = False
        while not self._text.startswith(end, self._at):
            following = self._text[self._at + 1 : self._at + 2]
            if end == "]" and after_one and self._text[self._at : self._at + 1] == "-" and following != "]":
                self._at += 1
                yield -1
                yield self._character()
                after_one = False
            else:
                yield self._character()
                after_one = True
        self._at += 1

    def _character(self) -> int:
        match = self._match(_CHARACTER, "a character")
        *codes, escape, plain = match.groups()
        code = next((int(digits, 16) for digits in codes if digits), None)
        return ord(_ESCAPES.get(escape, escape) if escape else plain) if code is None else code

    def _times(self) -> str | None:
        sign = self._text[self._at : self._at + 1]
        if sign and sign in "*+?":
            self._at += 1
            return sign
        if sign != "{":
            return None
        low, comma, high = self._match(_REPEAT, "a count such as {2,3}").groups()
        if int(low) > _MOST_REPEATS:
            raise GbnfError(f"it repeats something {low} times, and at most {_MOST_REPEATS} will do")
        if comma and (high is None or int(high) > _MOST_REPEATS):
            return f"{{{low},}}"
        return f"{{{low},{high or low}}}"

    def _match(self, pattern: re.Pattern[str], wanted: str) -> re.Match[str]:
        match = pattern.match(self._text, self._at)
        if match is None:
            raise self._error(wanted)
        self._at = match.end()
        return match

    def _expect(self, text: str) -> None:
        if not self._text.startswith(text, self._at):
            raise self._error(f"'{text}'")
        self._at += len(text)

    def _skip(self, space: re.Pattern[str]) -> None:
        match = space.match(self._text, self._at)
        self._at = match.end() if match else self._at

    def _error(self, wanted: str) -> GbnfError:
        line = self._text.count("\n", 0, self._at) + 1
        found = self._text[self._at : self._at + 20].split("\n")[0]
        return GbnfError(f"line {line} should have {wanted} where it has '{found}'")
