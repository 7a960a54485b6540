"""What is asked of an engine, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass

Message = dict[str, str]
Unit = int | str
"""What answers are compared by: a token's id, its text, or where the engine gives neither a character."""


@dataclass(frozen=True)
class Ask:
    """One request. `codeword` stands in `messages` and in those of no other request but turns of the same chat; `topic`
    is what the last message is about, in the words that stand there.

    `cached` is whether the engine may use what it remembers of earlier prompts.
    """

    label: str
    messages: tuple[Message, ...]
    codeword: str
    topic: str
    cached: bool = True

    def mentions(self, words: str) -> bool:
        """Whether the words stand in the messages, in capitals or not."""
        return any(words.lower() in message["content"].lower() for message in self.messages)


@dataclass(frozen=True)
class Step:
    """One token, its log-probability and those of the likeliest tokens, in nats, and its text."""

    token: Unit
    logprob: float
    top: tuple[tuple[Unit, float], ...] = ()
    text: str = ""

    def shortfall(self, token: Unit) -> float:
        """How much less likely than the chosen token another one was; at least so much where it is not in `top`."""
        known = dict(self.top)
        return self.logprob - known.get(token, min(known.values(), default=self.logprob))


@dataclass(frozen=True)
class Answer:
    """A whole answer: reasoning and content in one; `tokens` and `steps` are empty where the engine gives none."""

    text: str
    tokens: tuple[int, ...] = ()
    steps: tuple[Step, ...] = ()

    @property
    def units(self) -> tuple[Unit, ...]:
        """The answer as tokens, or as characters."""
        return self.tokens or tuple(step.token for step in self.steps) or tuple(self.text)

    @property
    def content(self) -> tuple[tuple[Unit, ...], str]:
        """What makes two answers the same."""
        return self.units, self.text

    def holds(self, codeword: str) -> bool:
        """Whether the codeword stands in the text, in capitals or not."""
        return codeword in self.text.lower()
