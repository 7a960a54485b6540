"""How much a single operation of a template would make: refused before it is done where that is past any use."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jinja2.exceptions import SecurityError

MOST_AT_ONCE = 32 << 20
"""Characters or list items that one operation may make."""
_MOST_NUMBER = 1 << 1024
_MOST_POWER = 64
_PART = 32

_PRINTING = frozenset(("string", "pprint", "xmlattr", "format", "join", "urlencode"))
_WIDE_FORMAT = re.compile(r"\d{5}|\*")


def check_operation(operator: str, left: object, right: object) -> None:
    """Raises `SecurityError` before `left operator right` would grow past all bounds."""
    sizes = [len(side) for side in (left, right) if isinstance(side, str | list | tuple)]
    numbers = [abs(side) for side in (left, right) if isinstance(side, int)]
    if operator == "%" and isinstance(left, str):
        check_nesting(right)
        _check_format(left, [right])
    elif operator == "+" and sizes:
        _check(sum(sizes))
    elif operator == "*" and sizes:
        _check(sizes[0] * max(numbers, default=1))
    elif max(numbers, default=0) > (_MOST_POWER if operator == "**" else _MOST_NUMBER):
        raise SecurityError("it computes with numbers that are too large; use another template")


def check_call(name: str, value: object, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """The same for a method or filter `name` of `value`."""
    if name in _PRINTING:
        for part in (value, *args, *kwargs.values()):
            check_nesting(part)
    growth = _GROWTH.get(name)
    if growth is not None and isinstance(value, str | list | tuple):
        _check(growth(value, [*args, *kwargs.values()]))


def check_nesting(value: object) -> None:
    """Raises `SecurityError` for a value of so many parts, each counted as often as it would be printed, that no
    message or tool has them."""
    if isinstance(value, str):
        return
    size, waiting = 0, [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict | list | tuple):
            waiting += part.values() if isinstance(part, dict) else part
            size += _PART * len(part)
        elif isinstance(part, str):
            size += len(part)
        if size > MOST_AT_ONCE:
            raise SecurityError("it prints a value without end; use another template")


def _check(size: int) -> None:
    if size > MOST_AT_ONCE:
        raise SecurityError("it makes too much text at once; use another template")


def _check_format(text: str, values: Sequence[object]) -> int:
    wide = _WIDE_FORMAT.search(text) or any(isinstance(value, int) and abs(value) > 2**63 for value in values)
    if wide:
        raise SecurityError("it formats text too wide; use another template")
    return text.count("%") + text.count("{") * max(
        (len(value) for value in values if isinstance(value, str)), default=1
    )


def _number(values: Sequence[Any], default: int) -> int:
    return max((abs(value) for value in values if isinstance(value, int)), default=default)


def _replaced(value: Any, values: Sequence[Any]) -> int:  # noqa: ANN401
    old, new = ([str(part) for part in values] + ["", ""])[:2]
    return str(value).count(old) * len(new)


def _joined(value: Any, values: Sequence[Any]) -> int:  # noqa: ANN401
    items = values[0] if isinstance(value, str) and values and isinstance(values[0], list | tuple) else value
    glue = value if items is not value else next((part for part in values if isinstance(part, str)), "")
    return sum(len(item) if isinstance(item, str) else 1 for item in items) + len(items) * len(glue)


def _width(value: Any, values: Sequence[Any]) -> int:  # noqa: ANN401
    return _number(values, 80)


def _refused(value: Any, values: Sequence[Any]) -> int:  # noqa: ANN401
    raise SecurityError("it uses a function that chat templates have no use for; use another template")


_GROWTH: Mapping[str, Callable[[Any, Sequence[Any]], int]] = {
    "replace": _replaced,
    "join": _joined,
    "indent": lambda value, values: (value.count("\n") + 1) * _number(values, 4),
    "expandtabs": lambda value, values: value.count("\t") * _number(values, 8),
    "format": _check_format,
    "center": _width,
    "ljust": _width,
    "rjust": _width,
    "zfill": _width,
    "batch": _width,
    "slice": _width,
    "translate": _refused,
    "format_map": _refused,
}
