"""Puts an answer together from the chunks of a stream, as OpenAI and llama-server send them."""

from __future__ import annotations

from typing import Any

from decomp_gauntlet.bleed.answer import Answer, Step, Unit


class Collector:
    """Takes chunk after chunk."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._tokens: list[int] = []
        self._steps: list[Step] = []
        self.n_pieces = 0
        """Chunks so far that carried something of the answer."""

    def add(self, chunk: dict[str, Any]) -> None:
        """Raises KeyError, TypeError, ValueError or AttributeError where it is no chunk of a chat."""
        before = self._size()
        self._tokens += chunk.get("tokens") or ()
        for choice in chunk["choices"]:
            delta = choice.get("delta") or {}
            self._texts += [text for key in ("reasoning_content", "content") if (text := delta.get(key))]
            self._steps += [_step(entry) for entry in (choice.get("logprobs") or {}).get("content") or ()]
        self.n_pieces += self._size() != before

    def answer(self) -> Answer:
        """All so far."""
        return Answer("".join(self._texts), tuple(self._tokens), tuple(self._steps))

    def _size(self) -> tuple[int, int, int]:
        return len(self._texts), len(self._tokens), len(self._steps)


def _step(entry: dict[str, Any]) -> Step:
    top = tuple((_token(other), float(other["logprob"])) for other in entry.get("top_logprobs") or ())
    return Step(_token(entry), float(entry["logprob"]), top, entry["token"])


def _token(entry: dict[str, Any]) -> Unit:
    """llama-server tells the id too; two tokens can have the same text."""
    token: Unit = entry["id"] if "id" in entry else entry["token"]
    return token
