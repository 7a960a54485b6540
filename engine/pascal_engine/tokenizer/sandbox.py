"""Jinja for templates that nobody vouches for: no way out of the sandbox, and bounds on steps, time and text.

Names and filters are those that transformers gives to chat templates.
"""

import functools
import json
import time
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from pascal_engine.tokenizer.growth import check_call, check_nesting, check_operation

MOST_STEPS = 3_000_000
"""Bodies of loops, branches and macros that one rendering may run through."""
MOST_SECONDS = 5.0
MOST_BUILT = 256 << 20
"""Characters and list items that one rendering may make, those it drops again included."""


@dataclass
class _Budget:
    """What a rendering used up."""

    steps: int = 0
    built: int = 0
    ends_at: float = field(default_factory=lambda: time.monotonic() + MOST_SECONDS)

    def step(self) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS or (not self.steps % 256 and time.monotonic() > self.ends_at):
            raise SecurityError("it does not come to an end; use another template")

    def build(self, size: int) -> None:
        self.built += size
        if self.built > MOST_BUILT:
            raise SecurityError("it makes too much text; use another template")


_budget: ContextVar[_Budget] = ContextVar("budget")


class Sandbox(ImmutableSandboxedEnvironment):
    """The environment of chat templates. Whatever goes beyond a bound is a `SecurityError`."""

    intercepted_binops = frozenset(("+", "*", "**", "%"))

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[_Generation, "jinja2.ext.loopcontrols"],
            finalize=_printable,
        )
        self.code_generator_class = _BoundedCode
        self.concat = _concat  # type: ignore[method-assign]
        self.filters = {name: self._bounded(name, function) for name, function in self.filters.items()}
        self.filters["tojson"] = _to_json
        del self.globals["lipsum"]
        self.globals |= {"raise_exception": _refuse, "strftime_now": _strftime_now}

    def render(self, template: jinja2.Template, names: Mapping[str, object]) -> str:
        """The template's text, within the bounds."""
        token = _budget.set(_Budget())
        try:
            return template.render(names)
        finally:
            _budget.reset(token)

    def call(self, context: Context, function: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        # The sandbox wraps `str.format`.
        receiver = getattr(getattr(function, "__wrapped__", function), "__self__", None)
        if isinstance(receiver, str | list):
            check_call(getattr(function, "__name__", ""), receiver, args, kwargs)
        return _measured(super().call(context, function, *args, **kwargs))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:  # noqa: ANN401
        check_operation(operator, left, right)
        return _measured(super().call_binop(context, operator, left, right))

    def step(self) -> None:
        """Called by the compiled template wherever it enters a body."""
        _budget.get().step()

    def join(self, parts: Iterable[object]) -> str:
        """The `~` operator."""
        return _concat(str(_printable(part)) for part in parts)

    def _bounded(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def bounded(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            # Filters may get the environment or the like before the value.
            first = hasattr(function, "jinja_pass_arg")
            value = args[first] if len(args) > first else ""
            check_call(name, value, args[first + 1 :], kwargs)
            return _measured(function(*args, **kwargs))

        return bounded


class _BoundedCode(CodeGenerator):
    """Compiles templates so that they count their steps."""

    def blockvisit(self, nodes: Iterable[nodes.Node], frame: Frame) -> None:
        self.writeline("environment.step()")
        super().blockvisit(nodes, frame)

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802
        self.write("environment.join((")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write("))")


class _Generation(Extension):
    """`{% generation %}` marks in a template what the assistant wrote; for a prompt it means nothing."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _concat(parts: Iterable[str]) -> str:
    budget, kept = _budget.get(), []
    for part in parts:
        budget.step()
        budget.build(len(part))
        kept.append(part)
    return "".join(kept)


def _printable(value: object) -> object:
    check_nesting(value)
    return value


def _measured(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, str | list | tuple):
        _budget.get().build(len(value))
    return value


def _to_json(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    if isinstance(indent, int) and indent > 64:
        raise SecurityError("it indents JSON too far; use another template")
    encoder = json.JSONEncoder(ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
    # Piece by piece: nested references to one list could make a small value endless.
    return _concat(encoder.iterencode(value))


def _refuse(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def _strftime_now(pattern: str) -> str:
    if len(pattern) > 256 or any(character.isdigit() for character in pattern):
        raise SecurityError("it asks for a date in a format that is none")
    return datetime.now().strftime(pattern)
