"""A process that compiles each grammar first: one that hangs, crashes or eats memory costs that process alone."""

import atexit
import json
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path
from typing import Any

from llguidance import LLMatcher, LLParserLimits, LLTokenizer, TokenizerWrapper

LIMITS = LLParserLimits(
    initial_lexer_fuel=200_000, step_lexer_fuel=100_000, max_lexer_states=10_000, verbose_errors=False
)
"""Bounds of time and memory, both to compile a grammar and for each of its masks: some tens of ms, some tens of MB."""

_SECONDS = 3.0
_MEMORY = 1 << 30
_STACK = 2 << 20
"""A quarter of what the engine's threads have, so that a grammar too deep for them is too deep here."""


class Trial:
    """The process, started when first needed and again after it had to be ended. May be used from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        atexit.register(self.end)

    def error(self, grammar: str) -> str:
        """What is wrong with a grammar in llguidance's form; nothing if it can be compiled."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._end()
                self._process = _start()
            process = self._process
            timer = threading.Timer(_SECONDS, process.kill)
            timer.start()
            answer = _ask(process, grammar)
            timer.cancel()
            if answer:
                return str(json.loads(answer))
            self._end()
            return "it takes too much time or memory"

    def end(self) -> None:
        """Ends the process, if it runs."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


@cache
def trial() -> Trial:
    """One for all vocabularies: whether a grammar can be compiled does not depend on them."""
    return Trial()


def _start() -> "subprocess.Popen[str]":
    # -P keeps this folder, whose modules are parts of a package, out of the path.
    command = [sys.executable, "-P", str(Path(__file__))]
    pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nowhere, encoding="utf-8")


def _ask(process: "subprocess.Popen[str]", grammar: str) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(grammar) + "\n")
        process.stdin.flush()
        return process.stdout.readline()
    except BrokenPipeError:
        return ""


class _Bytes:
    """A vocabulary of single bytes."""

    eos_token_id = 256
    bos_token_id = None
    tokens = [bytes([value]) for value in range(256)] + [b"<end>"]
    special_token_ids = (256,)

    def __call__(self, text: Any) -> list[int]:  # noqa: ANN401
        return list(text if isinstance(text, bytes) else text.encode())


def _serve() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    tokenizer = LLTokenizer(TokenizerWrapper(_Bytes()))
    for line in sys.stdin:
        matcher = LLMatcher(tokenizer, json.loads(line), log_level=0, limits=LIMITS)
        if not matcher.is_error():
            matcher.compute_bitmask()
        print(json.dumps(matcher.get_error()), flush=True)


if __name__ == "__main__":
    threading.stack_size(_STACK)
    threading.Thread(target=_serve).start()
