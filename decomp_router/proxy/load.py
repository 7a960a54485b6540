"""How busy the upstream is: its own word for it where it gives one, else what the router has sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from decomp_router.execute.upstream import Headers, Upstream, UpstreamError, UpstreamRequest

_PATIENCE_S = 2.0


class Load:
    """Counts the router's own requests in flight, and asks the upstream for its slots."""

    def __init__(self, upstream: Upstream, width: int) -> None:
        self.in_flight = 0
        self._upstream, self._width = upstream, width

    @contextmanager
    def busy(self, count: int = 1) -> Iterator[None]:
        """While `count` generations of ours run."""
        self.in_flight += count
        try:
            yield
        finally:
            self.in_flight -= count

    async def idle(self, headers: Headers) -> int:
        """Slots that could take a branch now."""
        slots = await self._ask(b"/slots", headers)
        if isinstance(slots, list):
            return sum(isinstance(slot, dict) and slot.get("is_processing") is False for slot in slots)
        props = await self._ask(b"/props", headers)
        total = props.get("total_slots") if isinstance(props, dict) else None
        return max(0, (total if isinstance(total, int) else self._width) - self.in_flight)

    async def _ask(self, target: bytes, headers: Headers) -> Any:  # noqa: ANN401 - any JSON
        try:
            async with (
                asyncio.timeout(_PATIENCE_S),
                self._upstream.stream(UpstreamRequest("GET", target, headers)) as response,
            ):
                body = b"".join([chunk async for chunk in response.chunks])
                return json.loads(body) if response.status == 200 else None
        except (UpstreamError, TimeoutError, ValueError, RecursionError):
            return None
