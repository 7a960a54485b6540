"""One branch: a request to the engine, read into its section, tried twice."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from decomp_router.execute.section import CONTENT, Piece, Section
from decomp_router.execute.sse import DONE, events
from decomp_router.execute.upstream import Upstream, UpstreamError, UpstreamRequest, UpstreamResponse

_REASONING = ("reasoning_content", "reasoning")
_HEAD = ("id", "created", "model", "system_fingerprint")


@dataclass(frozen=True)
class Branch:
    """Fills one section from one request."""

    upstream: Upstream
    request: UpstreamRequest
    section: Section

    async def run(self) -> None:
        """Runs to the end of the answer; raises UpstreamError if it fails twice or cannot be repeated."""
        try:
            await self._attempt()
        except UpstreamError:
            if self.section.read:
                raise
            self.section.clear()
            await self._attempt()
        self.section.close()

    async def _attempt(self) -> None:
        async with self.upstream.stream(self.request) as response:
            if response.status != 200:
                raise UpstreamError(f"The upstream answered a branch with status {response.status}.")
            await self._listen(response)

    async def _listen(self, response: UpstreamResponse) -> None:
        async for data in events(response.chunks):
            if data == DONE:
                break
            self._take(_chunk(data))
        if self.section.finish is None:
            raise UpstreamError("The upstream ended a branch before its answer was complete.")

    def _take(self, chunk: dict[str, Any]) -> None:
        section = self.section
        section.head = section.head or {name: chunk[name] for name in _HEAD if name in chunk}
        if isinstance(usage := chunk.get("usage"), dict):
            section.usage = _counts(usage)
        choices = chunk.get("choices")
        choice = _object(choices[0]) if isinstance(choices, list) and choices else {}
        for piece in _said(_object(choice.get("delta"))):
            section.add(piece)
        section.finish = choice.get("finish_reason") or section.finish


def _said(delta: dict[str, Any]) -> list[Piece]:
    """Reasoning and content of a delta; some engines give the same reasoning under two names."""
    thought = next((name for name in _REASONING if delta.get(name)), CONTENT)
    names = dict.fromkeys((thought, CONTENT))
    return [Piece(name, text) for name in names if isinstance(text := delta.get(name), str) and text]


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _chunk(data: bytes) -> dict[str, Any]:
    try:
        chunk = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UpstreamError("The upstream sent a branch something that is not JSON.") from error
    if not isinstance(chunk, dict):
        raise UpstreamError("The upstream sent a branch something that is no chunk of an answer.")
    if "error" in chunk:
        raise UpstreamError(f"The upstream ended a branch with an error: {_message(chunk['error'])}")
    return chunk


def _message(error: object) -> str:
    return str(error.get("message", error)) if isinstance(error, dict) else str(error)


def _counts(usage: dict[str, Any]) -> dict[str, int]:
    """Token counts, flat; those that the engine does not give are left out."""
    counts = {
        "prompt_tokens": usage.get("prompt_tokens"),
        "completion_tokens": usage.get("completion_tokens"),
        "cached_tokens": _object(usage.get("prompt_tokens_details")).get("cached_tokens"),
    }
    return {name: count for name, count in counts.items() if isinstance(count, int)}
