"""The same grammar in llguidance's variant of Lark.

A Lark terminal is matched as one regular expression, a rule as a sequence of terminals each of which takes as much text
as it can. So whatever of a grammar is regular becomes terminals, as large as possible; rules are left for recursion.
"""

from collections.abc import Callable, Iterator, Mapping

from pascal_engine.sampling.gbnf.parser import Choice, GbnfError, Node, Parser, Ref, Repeat, Series, Text, refs


def to_lark(text: str) -> str:
    """The Lark grammar of the same language. Raises `GbnfError`."""
    rules = Parser(text).rules()
    if "root" not in rules:
        raise GbnfError("it has no rule named 'root'")
    for name, node in rules.items():
        missing = next((ref for ref in refs(node) if ref not in rules), None)
        if missing is not None:
            raise GbnfError(f"rule '{name}' uses '{missing}', which is not defined")
    return _Writer(rules).text()


class _Writer:
    """Writes the rules that are reached from the root."""

    def __init__(self, rules: Mapping[str, Node]) -> None:
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
            new = [ref for ref in refs(self._rules[waiting.pop()]) if ref not in reached]
            reached |= dict.fromkeys(new)
            waiting += new
        return list(reached)

    def _write(self, node: Node, name: str) -> str:
        return self._rule(node) if name in self._recursive else self._terminal(node)

    def _terminal(self, node: Node) -> str:
        return _render(node, self._names, self._terminal)

    def _rule(self, node: Node) -> str:
        """`node` of a recursive rule: its largest regular parts stand in terminals of their own."""
        if self._is_regular(node):
            self._hoisted.append(f"H{len(self._hoisted)}: {self._terminal(node)}")
            return f"H{len(self._hoisted) - 1}"
        if isinstance(node, Series):
            node = Series(tuple(self._merged(node.items)))
            return "(" + " ".join(self._rule(item) for item in node.items) + ")"
        return _render(node, self._names, self._rule)

    def _merged(self, items: tuple[Node, ...]) -> Iterator[Node]:
        run: list[Node] = []
        for item in items:
            if self._is_regular(item):
                run.append(item)
                continue
            if run:
                yield Series(tuple(run))
            run = []
            yield item
        if run:
            yield Series(tuple(run))

    def _is_regular(self, node: Node) -> bool:
        return not any(ref in self._recursive for ref in refs(node))


def _render(node: Node, names: Mapping[str, str], inner: Callable[[Node], str]) -> str:
    if isinstance(node, Text):
        return f"/{node.regex}/" if node.regex else '""'
    if isinstance(node, Ref):
        return names[node.name]
    if isinstance(node, Repeat):
        return f"({inner(node.item)}){node.times}"
    if isinstance(node, Choice):
        return "(" + " | ".join(inner(item) for item in node.items) + ")"
    return "(" + " ".join(inner(item) for item in node.items) + ")" if node.items else '""'


def _recursive(rules: Mapping[str, Node]) -> set[str]:
    """Rules from which a cycle is reached: what is left once those that lead to finished ones alone are taken off."""
    left = {name: set(refs(node)) for name, node in rules.items()}
    users: dict[str, list[str]] = {name: [] for name in rules}
    for name, used in left.items():
        for ref in used:
            users[ref].append(name)
    finished = [name for name, used in left.items() if not used]
    while finished:
        done = finished.pop()
        del left[done]
        for user in users[done]:
            left[user].discard(done)
            if not left[user]:
                finished.append(user)
    return set(left)
