"""A llama-server that does what a test tells it, as an ASGI app; and routers in front of engines."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import httpx
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from decomp_router.config import Settings
from decomp_router.execute.upstream import Upstream
from decomp_router.plan import Plan
from decomp_router.proxy.app import create_app
from decomp_router.proxy.httpx_upstream import HttpxUpstream
from tests.decomp_router.fakes import FixedReader, StreamingTransport, plan_of

TIMEOUT = httpx.Timeout(600.0, connect=10.0)
PLAN = plan_of("Describe the river Ebro.", "Explain what tides are.", "List famous lighthouses.")
PARTS = [PLAN.text(task) for task in PLAN.subtasks]


@dataclass
class Request:
    """What the engine got."""

    method: str
    target: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes


@dataclass
class ScriptedEngine:
    """Answers every request alike: these bytes, waiting where an event stands among them."""

    chunks: list[bytes | asyncio.Event]
    status: int = 200
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    got_one: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
        self.requests.append(Request(scope["method"], target, list(scope["headers"]), body))
        self.got_one.set()
        answer, gone = asyncio.create_task(self._answer(send)), asyncio.create_task(receive())
        await asyncio.wait((answer, gone), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            self.left.set()
        answer.cancel()
        gone.cancel()

    async def _answer(self, send: Send) -> None:
        for chunk in self.chunks[:1]:
            if isinstance(chunk, asyncio.Event):
                await chunk.wait()
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        for chunk in self.chunks:
            if isinstance(chunk, asyncio.Event):
                await chunk.wait()
            else:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def settings(**values: object) -> Settings:
    return Settings(upstream="http://engine:8080", **values)


def in_front_of(engine: ScriptedEngine, address: str = "http://engine:8080", **values: object) -> Starlette:
    """A router before an engine that is reached through httpx."""
    upstream = HttpxUpstream(StreamingTransport(engine), address, TIMEOUT)
    return create_app(settings(**values), FixedReader(PLAN), upstream)


def fanning_out(
    upstream: Upstream, plan: Plan = PLAN, sleep: Callable[[float], Awaitable[None]] | None = None
) -> Starlette:
    """A router that reads every prompt as the plan, and may fan out."""

    async def never(_: float) -> None:
        await asyncio.Event().wait()

    return create_app(settings(fanout="auto"), FixedReader(plan), upstream, sleep=sleep or never)


def client_of(app: Starlette) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://router")
