"""llama.cpp's grammar notation (GBNF, grammars/README.md there) in llguidance's variant of Lark.

A Lark terminal is matched as one regular expression, a rule as a sequence of terminals each of which takes as much text
as it can. So whatever of a grammar is regular becomes terminals, as large as possible; rules are left for recursion.
"""

import re
from collections.abc import Callable, Iterator, Mapping
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
class _Text:
    """A part of a regular expression."""

    regex: str


@dataclass(frozen=True)
class _Ref:
    name: str


@dataclass(frozen=True)
class _Series:
    items: tuple["_Node", ...]


@dataclass(frozen=True)
class _Choice:
    items: tuple["_Node", ...]


@dataclass(frozen=True)
class _Repeat:
    item: "_Node"
    times: str


_Node: TypeAlias = _Text | _Ref | _Series | _Choice | _Repeat


def to_lark(text: str) -> str:
    """The Lark grammar of the same language. Raises `GbnfError`."""
    rules = _Parser(text).rules()
    if "root" not in rules:
        raise GbnfError("it has no rule named 'root'")
    for name, node in rules.items():
        missing = next((ref for ref in _refs(node) if ref not in rules), None)
        if missing is not None:
            raise GbnfError(f"rule '{name}' uses '{missing}', which is not defined")
    return _Writer(rules).text()


class _Parser:
    """Reads rules by recursive descent."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def rules(self) -> dict[str, _Node]:
        rules: dict[str, _Node] = {}
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

    def _choice(self, space: re.Pattern[str]) -> _Node:
        items = [self._series(space)]
        while self._text[self._at : self._at + 1] == "|":
            self._at += 1
            self._skip(_SPACE_AND_LINES)
            items.append(self._series(space))
        return items[0] if len(items) == 1 else _Choice(tuple(items))

    def _series(self, space: re.Pattern[str]) -> _Node:
        items: list[_Node] = []
        while (item := self._item()) is not None:
            self._skip(space)
            repeats = 0
            while (times := self._times()) is not None:
                item = _Repeat(item, times)
                repeats += 1
                self._skip(space)
            if repeats > _DEEPEST:
                raise GbnfError(f"it repeats one thing in more than {_DEEPEST} ways at once")
            items.append(item)
        return items[0] if len(items) == 1 else _Series(tuple(items))

    def _item(self) -> _Node | None:
        start = self._text[self._at : self._at + 1]
        if start == '"':
            return _Text("".join(f"\\u{{{code:x}}}" for code in self._characters('"')))
        if start == "[":
            return self._class()
        if start == "(":
            return self._group()
        if start == ".":
            self._at += 1
            return _Text(r"[\u{0}-\u{10ffff}]")
        if start and start in "<!":
            raise GbnfError("it names tokens, which is not supported; write their text")
        name = _NAME.match(self._text, self._at)
        if name is None:
            return None
        self._at = name.end()
        return _Ref(name.group())

    def _group(self) -> _Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise GbnfError(f"its parentheses are more than {_DEEPEST} deep")
        self._at += 1
        self._skip(_SPACE_AND_LINES)
        node = self._choice(_SPACE_AND_LINES)
        self._expect(")")
        self._depth -= 1
        return node

    def _class(self) -> _Text:
        negated = self._text[self._at + 1 : self._at + 2] == "^"
        self._at += negated
        parts = [f"\\u{{{code:x}}}" if code >= 0 else "-" for code in self._characters("]")]
        if not parts:
            raise self._error("a character between '[' and ']'")
        return _Text(f"[{'^' if negated else ''}{''.join(parts)}]")

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


class _Writer:
    """Writes the rules that are reached from the root."""

    def __init__(self, rules: Mapping[str, _Node]) -> None:
        self._rules = rules
        self._recursive = _recursive(rules)
        self._names = {name: f"r{i}" if name in self._recursive else f"T{i}" for i, name in enumerate(rules)}
        self._hoisted: list[str] = []

    def text(self) -> str:
        lines = [f"{self._names[name]}: {self._write(self._rules[name], name)}" for name in self._reached()]
        return "\n".join([f"start: {self._names['root']}", *lines, *self._hoisted])

    def _reached(self) -> list[str]:
        reached = {"root": None}
        waiting = ["root"]
        while waiting:
            new = [ref for ref in _refs(self._rules[waiting.pop()]) if ref not in reached]
            reached |= dict.fromkeys(new)
            waiting += new
        return list(reached)

    def _write(self, node: _Node, name: str) -> str:
        return self._rule(node) if name in self._recursive else self._terminal(node)

    def _terminal(self, node: _Node) -> str:
        return _render(node, self._names, self._terminal)

    def _rule(self, node: _Node) -> str:
        """`node` of a recursive rule: its largest regular parts stand in terminals of their own."""
        if self._is_regular(node):
            self._hoisted.append(f"H{len(self._hoisted)}: {self._terminal(node)}")
            return f"H{len(self._hoisted) - 1}"
        if isinstance(node, _Series):
            node = _Series(tuple(self._merged(node.items)))
            return "(" + " ".join(self._rule(item) for item in node.items) + ")"
        return _render(node, self._names, self._rule)

    def _merged(self, items: tuple[_Node, ...]) -> Iterator[_Node]:
        run: list[_Node] = []
        for item in items:
            if self._is_regular(item):
                run.append(item)
                continue
            if run:
                yield _Series(tuple(run))
            run = []
            yield item
        if run:
            yield _Series(tuple(run))

    def _is_regular(self, node: _Node) -> bool:
        return not any(ref in self._recursive for ref in _refs(node))


def _render(node: _Node, names: Mapping[str, str], inner: Callable[[_Node], str]) -> str:
    if isinstance(node, _Text):
        return f"/{node.regex}/" if node.regex else '""'
    if isinstance(node, _Ref):
        return names[node.name]
    if isinstance(node, _Repeat):
        return f"({inner(node.item)}){node.times}"
    if isinstance(node, _Choice):
        return "(" + " | ".join(inner(item) for item in node.items) + ")"
    return "(" + " ".join(inner(item) for item in node.items) + ")" if node.items else '""'


def _refs(node: _Node) -> Iterator[str]:
    if isinstance(node, _Ref):
        yield node.name
    elif isinstance(node, _Repeat):
        yield from _refs(node.item)
    elif isinstance(node, _Series | _Choice):
        for item in node.items:
            yield from _refs(item)


def _recursive(rules: Mapping[str, _Node]) -> set[str]:
    """Rules from which a cycle is reached: what is left once those that lead to finished ones alone are taken off."""
    left = {name: set(_refs(node)) for name, node in rules.items()}
    users: dict[str, list[str]] = {name: [] for name in rules}
    for name, refs in left.items():
        for ref in refs:
            users[ref].append(name)
    finished = [name for name, refs in left.items() if not refs]
    while finished:
        done = finished.pop()
        del left[done]
        for user in users[done]:
            left[user].discard(done)
            if not left[user]:
                finished.append(user)
    return set(left)
