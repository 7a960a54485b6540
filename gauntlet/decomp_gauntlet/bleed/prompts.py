"""Codewords, and the prompts that carry them. Everything follows from a seed."""

from __future__ import annotations

import random

from decomp_gauntlet.bleed.answer import Ask

CONSONANTS, VOWELS = "bdfgklmnprstvz", "aeiou"
SYLLABLES = 5
TOPICS = (
    "how bread rises", "why the tide comes in twice a day", "how a bicycle stays upright", "what a lighthouse is for",
    "how bees find flowers", "why leaves turn red", "how a clock keeps time", "what makes glass clear",
    "how a bridge carries a train", "why the sea is salt", "how wool becomes a jumper", "what a fever does",
    "how a kite stays up", "why cats purr", "how ink dries", "what makes thunder", "how a lock opens",
    "why ice floats", "how cheese ripens", "what a compass shows",
)  # fmt: skip
REPEATED, SHELF = "five times and nothing else", "what stands on the first shelf"
RECALL = "What is the codeword of this conversation? Answer with that word alone."


class Codewords:
    """Makes up words and remembers them all, so that one that turns up later is known too."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.issued: list[str] = []

    def make(self) -> str:
        """Ten letters that no language has; the chance that a model hits on one by itself is nil."""
        word = "".join(self._rng.choice(CONSONANTS) + self._rng.choice(VOWELS) for _ in range(SYLLABLES))
        if word in self.issued:
            return self.make()
        self.issued.append(word)
        return word


class Prompts:
    """The requests of one run."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.codewords = Codewords(rng)
        self._deck: list[str] = []

    def repeat(self, label: str, *, cached: bool) -> Ask:
        """Has the model say its codeword."""
        word = self.codewords.make()
        content = f"Write the word {word} {REPEATED}."
        return _single(label, content, word, REPEATED, cached)

    def explain(self, label: str, *, cached: bool) -> Ask:
        """A question of its own; every answer is another one."""
        word = self.codewords.make()
        topic = self._topic()
        content = f"Explain to our friend {word} {topic}. Begin with the name {word}."
        return _single(label, content, word, topic, cached)

    def long(self, label: str, n_chars: int, *, cached: bool) -> Ask:
        """A prompt of about `n_chars` characters, to keep the engine busy with reading."""
        word = self.codewords.make()
        lines = [f"The stock list of {word}:"]
        while sum(map(len, lines)) + len(lines) < n_chars:
            lines.append(f"shelf {self._rng.randrange(1000)}: {self._rng.choice(TOPICS)}")
        lines.append(f"Explain to {word} {SHELF}.")
        return _single(label, "\n".join(lines), word, SHELF, cached)

    def turns(self, word: str, n_turns: int) -> list[tuple[str, str]]:
        """What a user says in a chat, as topics and messages: the codeword, questions, and at last whether the model
        still knows the word."""
        turns = [(topic, f"Explain {topic} in one sentence.") for topic in self._rng.sample(TOPICS, n_turns - 1)]
        topic, question = turns[0]
        turns[0] = (topic, f"The codeword of this conversation is {word}. {question}")
        return [*turns, (RECALL, RECALL)]

    def _topic(self) -> str:
        """All topics in turn, so that few requests at a time share one."""
        self._deck = self._deck or self._rng.sample(TOPICS, len(TOPICS))
        return self._deck.pop()


def _single(label: str, content: str, codeword: str, topic: str, cached: bool) -> Ask:
    return Ask(label, ({"role": "user", "content": content},), codeword, topic, cached)
