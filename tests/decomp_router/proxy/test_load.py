"""How many slots are idle, by whatever the upstream tells."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from decomp_router.execute.upstream import UpstreamError, UpstreamRequest, UpstreamResponse
from decomp_router.proxy.load import Load


class Telling:
    """An upstream with these bodies at these paths; 404 elsewhere, and no upstream at all for None."""

    def __init__(self, bodies: dict[bytes, Any] | None) -> None:
        self.bodies = bodies

    @asynccontextmanager
    async def stream(self, request: UpstreamRequest) -> AsyncIterator[UpstreamResponse]:
        if self.bodies is None:
            raise UpstreamError("down")

        async def chunks() -> AsyncIterator[bytes]:
            assert self.bodies is not None
            yield json.dumps(self.bodies.get(request.target)).encode()

        yield UpstreamResponse(200 if request.target in self.bodies else 404, (), chunks())


@pytest.mark.parametrize(
    ("bodies", "idle"),
    [
        ({b"/slots": [{"is_processing": False}, {"is_processing": True}, {"is_processing": False}]}, 2),
        ({b"/slots": [3, {}, {"is_processing": False}]}, 1),
        ({b"/props": {"total_slots": 6}}, 5),
        ({b"/slots": {"error": "off"}, b"/props": {"total_slots": 1}}, 0),
        ({b"/props": {"total_slots": "many"}}, 3),
        ({}, 3),
        (None, 3),
    ],
)
async def test_idle_slots(bodies: dict[bytes, Any] | None, idle: int) -> None:
    load = Load(Telling(bodies), width=4)
    with load.busy():
        assert await load.idle(()) == idle
    assert load.in_flight == 0
