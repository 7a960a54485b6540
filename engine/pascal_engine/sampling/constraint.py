"""Grammars that an answer must follow."""

from dataclasses import dataclass, replace

from pascal_engine.tokenizer import Tokenizer


class ConstraintError(Exception):
    """A grammar or schema cannot be used: the message is one sentence that says why."""


@dataclass(frozen=True)
class Constraint:
    """A compiled grammar; one may serve many requests."""

    grammar: str
    trigger: str = ""

    def after(self, trigger: str) -> "Constraint":
        """The same grammar, but holding only from where the answer has come to contain `trigger`."""
        return replace(self, trigger=trigger)


class ConstraintCompiler:
    """Compiles grammars for one vocabulary; may be used from any thread. All methods raise `ConstraintError`."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def from_json_schema(self, schema: object) -> Constraint:
        """`schema` as parsed from JSON: an object, or true for any JSON value."""
        raise NotImplementedError

    def from_gbnf(self, text: str) -> Constraint:
        """A grammar in llama.cpp's notation."""
        raise NotImplementedError

    def from_lark(self, text: str) -> Constraint:
        """A grammar in llguidance's variant of Lark."""
        raise NotImplementedError

    def from_regex(self, text: str) -> Constraint:
        """The whole answer matches a regular expression."""
        raise NotImplementedError
