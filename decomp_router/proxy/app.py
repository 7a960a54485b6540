"""The service as an ASGI app: the router's own routes, and everything else to the upstream."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

from decomp_router.config import Settings
from decomp_router.execute.upstream import Upstream
from decomp_router.gate.decide import Policy
from decomp_router.proxy.chat import ChatCompletions, Clock
from decomp_router.proxy.decompose import Decompose
from decomp_router.proxy.delivery import Delivery
from decomp_router.proxy.event_stream import Sleep
from decomp_router.proxy.judge import Judge, Reader
from decomp_router.proxy.load import Load
from decomp_router.proxy.passthrough import PassThrough
from decomp_router.proxy.records import Records

Lifespan = Callable[[Starlette], AbstractAsyncContextManager[None]]


@dataclass(frozen=True)
class State:
    """The router's own routes: how it is, and what it decided last."""

    settings: Settings
    load: Load
    records: Records

    async def health(self, _: Request) -> JSONResponse:
        """The router itself; the upstream's health is at /health."""
        settings = self.settings
        return JSONResponse(
            {"status": "ok", "upstream": settings.upstream, "fanout": settings.fanout, "in_flight": self.load.in_flight}
        )

    async def decisions(self, _: Request) -> JSONResponse:
        """The last decisions, newest first."""
        return JSONResponse({"decisions": self.records.as_json()})


def create_app(
    settings: Settings,
    reader: Reader,
    upstream: Upstream,
    *,
    sleep: Sleep = asyncio.sleep,
    clock: Clock = time.perf_counter,
    lifespan: Lifespan | None = None,
) -> Starlette:
    """Puts the service together. `sleep` and `clock` are its only sense of time."""
    load, records, linear = Load(upstream, settings.max_width), Records(), PassThrough(upstream)
    judge = Judge(reader, load, Policy(settings.max_width, settings.min_length))
    chat = ChatCompletions(upstream, judge, load, linear, Delivery(linear, sleep), records, clock)
    state = State(settings, load, records)
    routes = [
        Route("/decompose", Decompose(reader, clock), methods=["POST"]),
        Route("/router/health", state.health),
        Route("/router/decisions", state.decisions),
        Mount("/", linear),
    ]
    if settings.fanout == "auto":
        routes.insert(0, Route("/v1/chat/completions", chat, methods=["POST"]))
    return Starlette(routes=routes, lifespan=lifespan)
