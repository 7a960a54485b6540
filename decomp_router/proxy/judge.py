"""From the bytes of a chat request to the decision about it, the cheap questions first."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from decomp_router.decompose.reading import Reading
from decomp_router.execute.upstream import Headers
from decomp_router.gate.conversation import Conversation
from decomp_router.gate.decide import Policy, crowded, decide, room
from decomp_router.gate.eligibility import obstacle, token_limit
from decomp_router.plan import Decision
from decomp_router.proxy.load import Load

_log = logging.getLogger(__name__)


class Reader(Protocol):
    """Anything that turns a prompt into a plan; runs in a worker thread."""

    def read(self, prompt: str, context: Sequence[tuple[str, str]] = ()) -> Reading:
        """The plan of a prompt, with the (role, text) messages before it as context."""
        ...


@dataclass(frozen=True)
class Verdict:
    """A decision, the request that it is about, and how many branches may run at the same time."""

    decision: Decision
    body: dict[str, Any]
    width: int = 1


class Judge:
    """Decides how a chat request runs."""

    def __init__(self, reader: Reader, load: Load, policy: Policy) -> None:
        self._reader, self._load, self._policy = reader, load, policy

    async def decide(self, raw: bytes, headers: Headers) -> Verdict:
        """Never fails: whatever is unclear about a request, it runs linearly."""
        body = _object(raw)
        if body is None:
            return _linear("the body is not a JSON object", {})
        if reason := obstacle(body):
            return _linear(reason, body)
        idle = await self._load.idle(headers)
        if reason := crowded(idle, self._policy):
            return _linear(reason, body)
        conversation = Conversation.of(body["messages"])
        try:
            reading = await asyncio.to_thread(self._reader.read, conversation.prompt, conversation.context)
        except Exception:
            _log.exception("the decomposer failed")
            return _linear("the decomposer failed", body)
        decision = decide(reading.plan, reading.reason, idle, self._policy, token_limit(body))
        return Verdict(decision, body, min(decision.width, room(idle, self._policy)))


def _linear(reason: str, body: dict[str, Any]) -> Verdict:
    return Verdict(Decision("linear", (reason,)), body)


def _object(raw: bytes) -> dict[str, Any] | None:
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None
