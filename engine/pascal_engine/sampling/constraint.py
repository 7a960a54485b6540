"""Grammars that an answer must follow, by way of llguidance."""

import json
import threading
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper

from pascal_engine.sampling.gbnf import GbnfError, to_lark
from pascal_engine.sampling.trial import LIMITS, trial
from pascal_engine.tokenizer import Tokenizer

Mask = npt.NDArray[np.bool_]

_LONGEST = 1 << 18
_WHITESPACE = r"[ ]?|\n{1,2}[ \t]{0,20}"


class ConstraintError(Exception):
    """A grammar or schema cannot be used: the message is one sentence that says why."""


class ConstraintState:
    """How far one answer has come in its grammar. All methods raise `ConstraintError` where the grammar turns out too
    complex on the way."""

    def __init__(self, matcher: LLMatcher, vocabulary: "_Vocabulary", trigger: str) -> None:
        self._matcher, self._vocabulary = matcher, vocabulary
        self._trigger = trigger.encode("utf-8", "replace")
        self._waiting = bool(trigger)
        self._tail = b""

    @property
    def complete(self) -> bool:
        """True where nothing more may follow."""
        return not self._waiting and self._matcher.is_stopped()

    def mask(self) -> Mask | None:
        """Which tokens may follow, [vocabulary]; None where all may. Tokens that end an answer are among them where
        the grammar is satisfied."""
        if self._waiting:
            return None
        bits = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
        self._check()
        return np.unpackbits(bits, count=self._vocabulary.size, bitorder="little").view(np.bool_)

    def permits(self, token: int) -> bool:
        """False for a token that contains the end of the trigger, and after it what is against the grammar."""
        rest = self._after_trigger(token) if self._waiting else None
        if not rest:
            return True
        tokens = self._vocabulary.split(rest)
        return self._matcher.validate_tokens(tokens) == len(tokens)

    def accept(self, token: int) -> None:
        """`token` follows; it is one that `mask` allows or, before the trigger, that is permitted."""
        if not self._waiting:
            if not self._matcher.is_stopped():
                self._matcher.consume_token(token)
                self._check()
            return
        rest = self._after_trigger(token)
        if rest is None:
            self._tail = (self._tail + self._vocabulary.piece(token))[-len(self._trigger) :]
            return
        self._waiting = False
        if rest:
            self._matcher.consume_tokens(self._vocabulary.split(rest))
            self._check()

    def _after_trigger(self, token: int) -> bytes | None:
        _, found, rest = (self._tail + self._vocabulary.piece(token)).partition(self._trigger)
        return rest if found else None

    def _check(self) -> None:
        if self._matcher.is_error():
            raise ConstraintError(f"the answer could not follow its grammar: {_first_line(self._matcher.get_error())}")


@dataclass(frozen=True)
class Constraint:
    """A grammar that was tried; it may serve many requests. `prepared` matchers are for the first that come."""

    grammar: str
    vocabulary: "_Vocabulary"
    trigger: str = ""
    prepared: list[LLMatcher] = field(default_factory=list, compare=False, repr=False)

    def after(self, trigger: str) -> "Constraint":
        """The same grammar, but holding only from where the answer has come to contain `trigger`."""
        return replace(self, trigger=trigger)

    def start(self) -> ConstraintState:
        """The state of an answer that has not begun. It shares nothing with others: copies of one matcher would share
        its lexer, and with it the bounds on what the lexer may take."""
        try:
            matcher = self.prepared.pop()
        except IndexError:
            matcher = self.vocabulary.matcher(self.grammar)
        return ConstraintState(matcher, self.vocabulary, self.trigger)


class ConstraintCompiler:
    """Compiles grammars for one vocabulary; may be used from any thread but should not be from one that others wait
    for, since a grammar may take seconds. All methods raise `ConstraintError`."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._vocabulary = _Vocabulary(tokenizer)
        # Agents send the same tools with every request.
        self._error = lru_cache(maxsize=64)(trial().error)

    def from_json_schema(self, schema: object) -> Constraint:
        """`schema` as parsed from JSON: an object, or true for any JSON value."""
        schema = {} if schema is True else schema
        if not isinstance(schema, dict):
            raise ConstraintError("a JSON schema must be an object")
        try:
            text = json.dumps(schema)
            _check_length("JSON schema", text)
            grammar = LLMatcher.grammar_from_json_schema(text, overrides={"whitespace_pattern": _WHITESPACE})
        except (ValueError, RecursionError) as error:
            raise ConstraintError(f"the JSON schema cannot be used: {_first_line(str(error))}") from error
        return self._compile("JSON schema", grammar)

    def from_gbnf(self, text: str) -> Constraint:
        """A grammar in llama.cpp's notation, or one that begins with `%llguidance`, in that of `from_lark`."""
        if text.startswith("%llguidance"):
            return self.from_lark(text)
        _check_length("grammar", text)
        try:
            return self._compile("grammar", LLMatcher.grammar_from_lark(to_lark(text)))
        except GbnfError as error:
            raise ConstraintError(f"the grammar cannot be used: {error}") from error

    def from_lark(self, text: str) -> Constraint:
        """A grammar in llguidance's variant of Lark."""
        _check_length("grammar", text)
        return self._compile("grammar", LLMatcher.grammar_from_lark(text))

    def from_regex(self, text: str) -> Constraint:
        """The whole answer matches a regular expression."""
        _check_length("regular expression", text)
        return self._compile("regular expression", LLMatcher.grammar_from_regex(text))

    def _compile(self, what: str, grammar: str) -> Constraint:
        _check(what, self._error(grammar))
        matcher = self._vocabulary.matcher(grammar)
        matcher.compute_bitmask()
        _check(what, matcher.get_error())
        return Constraint(grammar, self._vocabulary, prepared=[matcher])


class _Vocabulary:
    """The model's tokens as llguidance wants them."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._lock = threading.Lock()
        self.size = tokenizer.n_vocab

    @property
    def tokenizer(self) -> LLTokenizer:
        """Built when the first grammar is: a large vocabulary takes a second."""
        with self._lock:
            return self._built

    @cached_property
    def _built(self) -> LLTokenizer:
        ends = sorted(self._tokenizer.end_of_generation)
        if not ends:
            raise ConstraintError("the model has no token that ends an answer, hence answers cannot follow a grammar")
        return LLTokenizer(TokenizerWrapper(_Adapter(self._tokenizer)), n_vocab=self.size, eos_token=ends)

    def matcher(self, grammar: str) -> LLMatcher:
        return LLMatcher(self.tokenizer, grammar, log_level=0, limits=LIMITS)

    def piece(self, token: int) -> bytes:
        return self._tokenizer.piece(token)

    def split(self, text: bytes) -> list[int]:
        """Some tokens that spell `text`."""
        return self.tokenizer.tokenize_bytes(text)


class _Adapter:
    """What llguidance asks of a tokenizer."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self.eos_token_id = min(tokenizer.end_of_generation)
        self.bos_token_id = None
        self.tokens = [tokenizer.token_bytes(token) for token in range(tokenizer.n_vocab)]
        self.special_token_ids = [token for token in range(tokenizer.n_vocab) if not tokenizer.piece(token)]

    def __call__(self, text: bytes) -> list[int]:
        return self._tokenizer.encode(text.decode("utf-8", "replace"))


def _check(what: str, error: str) -> None:
    if error:
        raise ConstraintError(f"the {what} cannot be used: {_first_line(error)}")


def _check_length(what: str, text: str) -> None:
    if len(text) > _LONGEST:
        raise ConstraintError(f"the {what} has {len(text)} characters, and at most {_LONGEST} will do")


def _first_line(text: str) -> str:
    if text.startswith("NoExtension"):
        return "no text can satisfy it"
    line = text.strip().split("\n", 1)[0].rstrip(".: ")
    return line if len(line) <= 200 else line[:199] + "…"
