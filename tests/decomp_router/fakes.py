"""Scripted stand-ins for what lies outside the router: an engine, the decomposer, a client."""

from __future__ import annotations

import asyncio
import importlib
import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import openai
from starlette.applications import Starlette
from starlette.types import ASGIApp, Message

from decomp_router.decompose.reading import Reading
from decomp_router.execute.sse import DONE, frame
from decomp_router.execute.upstream import UpstreamError, UpstreamRequest, UpstreamResponse
from decomp_router.plan import Plan, Subtask

LINEAR = "the whole message"


def plan_of(*parts: str, deps: Mapping[int, Sequence[int]] | None = None, length: int = 2) -> Plan:
    """Parts in a row as sub-tasks t1, t2, ...; `deps` by their numbers from 1."""
    subtasks, start = [], 0
    for number, part in enumerate(parts, 1):
        parents = tuple(f"t{parent}" for parent in (deps or {}).get(number, ()))
        subtasks.append(Subtask(f"t{number}", start, start + len(part), parents, length))
        start += len(part) + 1
    return Plan(" ".join(parts), tuple(subtasks))


class FixedReader:
    """Reads every prompt as the same plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.asked: list[tuple[str, tuple[tuple[str, str], ...]]] = []

    def read(self, prompt: str, context: Sequence[tuple[str, str]] = ()) -> Reading:
        self.asked.append((prompt, tuple(context)))
        return Reading(self.plan, "as scripted")


@dataclass(frozen=True)
class Thought:
    """A step of a script: reasoning."""

    text: str


@dataclass(frozen=True)
class Finish:
    """A step of a script: the reason to finish, if it is not "stop"."""

    reason: str


@dataclass(frozen=True)
class Broken:
    """A step of a script: the upstream breaks off, or before its first step cannot be reached."""


@dataclass(frozen=True)
class Raw:
    """A step of a script: bytes as they are, and the end of the stream."""

    data: bytes


Step = str | Thought | Finish | Broken | Raw | asyncio.Event
Script = Sequence[Step]


def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 7, "model": "tiny"}
    return frame(json.dumps({**head, "choices": [choice]}, ensure_ascii=False).encode())


def usage_chunk(tokens: int) -> bytes:
    usage = {"prompt_tokens": 10, "completion_tokens": tokens, "total_tokens": 10 + tokens}
    return frame(
        json.dumps({"choices": [], "usage": {**usage, "prompt_tokens_details": {"cached_tokens": 4}}}).encode()
    )


async def played(script: Script) -> AsyncIterator[bytes]:
    """An answer as llama-server streams it."""
    finish, tokens = "stop", 0
    yield chunk({"role": "assistant", "content": None})
    for step in script:
        await asyncio.sleep(0)  # so that branches take turns
        match step:
            case str() | Thought():
                tokens += 1
                yield chunk({"content": step} if isinstance(step, str) else {"reasoning_content": step.text})
            case Finish():
                finish = step.reason
            case Broken():
                raise UpstreamError("The upstream broke off.")
            case Raw():
                yield step.data
                return
            case asyncio.Event():
                await step.wait()
    yield chunk({}, finish) + usage_chunk(tokens) + frame(DONE)


@dataclass
class ScriptedUpstream:
    """Answers branches by the part that their instruction names: one script, or one for each attempt."""

    scripts: Mapping[str, Script | list[Script]]
    slots: int = 4
    rechunked: Callable[[AsyncIterator[bytes]], AsyncIterator[bytes]] = lambda chunks: chunks
    bodies: list[dict[str, Any]] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    arrivals: asyncio.Queue[str] = field(default_factory=asyncio.Queue)

    @asynccontextmanager
    async def stream(self, request: UpstreamRequest) -> AsyncIterator[UpstreamResponse]:
        if request.method == "GET":
            yield self._state(request.target)
            return
        assert isinstance(request.body, bytes)
        body = json.loads(request.body)
        part = part_of(body)
        attempt = self.opened.count(part)
        self.bodies.append(body)
        self.opened.append(part)
        self.arrivals.put_nowait(part)
        script = self._script(part, attempt)
        try:
            if script and isinstance(script[0], Broken):
                raise UpstreamError("The upstream cannot be reached.")
            yield UpstreamResponse(200, ((b"content-type", b"text/event-stream"),), self.rechunked(played(script)))
        finally:
            self.closed.append(part)

    def _state(self, target: bytes) -> UpstreamResponse:
        slots = [{"id": slot, "is_processing": False} for slot in range(self.slots)]
        return UpstreamResponse(200, (), _once(json.dumps(slots).encode()))

    def _script(self, part: str, attempt: int) -> Script:
        scripts = self.scripts[part]
        if scripts and isinstance(scripts[0], list):
            return scripts[attempt]  # type: ignore[return-value]
        return scripts  # type: ignore[return-value]


def part_of(body: Mapping[str, Any]) -> str:
    """The part that a branch is told to answer."""
    content = body["messages"][-1]["content"]
    text = content if isinstance(content, str) else content[-1]["text"]
    found = re.findall(r"\[[^\[]*«(.*?)»[^\[]*\]$", text)
    return found[-1] if found else LINEAR


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data


def rechunking(sizes: Iterable[int]) -> Callable[[AsyncIterator[bytes]], AsyncIterator[bytes]]:
    """Cuts a stream anew, into chunks of these sizes."""
    cuts = list(sizes) or [1]

    async def cut(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        data, turn = b"".join([chunk async for chunk in chunks]), 0
        while data:
            size = cuts[turn % len(cuts)]
            yield data[:size]
            data, turn = data[size:], turn + 1

    return cut


class StreamingTransport(httpx.AsyncBaseTransport):
    """Like httpx.ASGITransport, but hands out each chunk when the app sends it, and tells it when we leave."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        exchange = Exchange(self.app, request.method, request.url.raw_path, b"", request.headers.raw)
        exchange.say(await request.aread())
        try:
            start = await exchange.message()
        except asyncio.CancelledError:
            exchange.leave()
            await exchange.over()
            raise
        return httpx.Response(start["status"], headers=start["headers"], stream=_Body(exchange))


class _Body(httpx.AsyncByteStream):
    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        more = True
        while more:
            message = await self._exchange.message()
            more = message.get("more_body", False)
            if data := message.get("body", b""):
                yield data

    async def aclose(self) -> None:
        self._exchange.leave()
        await self._exchange.over()


class Exchange:
    """One request to an ASGI app, driven message by message."""

    def __init__(
        self,
        app: ASGIApp,
        method: str,
        target: bytes,
        body: bytes,
        headers: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        path, _, query = target.partition(b"?")
        pairs = [(name.lower(), value) for name, value in headers]
        if body:
            pairs.append((b"content-length", str(len(body)).encode()))
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "scheme": "http",
            "method": method,
            "path": path.decode(),
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": pairs,
            "server": ("router", 80),
            "client": ("127.0.0.1", 1),
        }
        self._inbox: asyncio.Queue[Message] = asyncio.Queue()
        self._outbox: asyncio.Queue[Message] = asyncio.Queue()
        if body:
            self.say(body)
        self._task = asyncio.create_task(app(scope, self._inbox.get, self._outbox.put))

    def say(self, body: bytes, *, more: bool = False) -> None:
        self._inbox.put_nowait({"type": "http.request", "body": body, "more_body": more})

    def leave(self) -> None:
        """The client closes its connection."""
        self._inbox.put_nowait({"type": "http.disconnect"})

    async def message(self) -> Message:
        """What the app sends next; fails if it ends instead."""
        sent = asyncio.create_task(self._outbox.get())
        await settle()
        await asyncio.wait((sent, self._task), return_when=asyncio.FIRST_COMPLETED, timeout=5)
        await settle()
        if not sent.done():
            sent.cancel()
            raise AssertionError("the app sent nothing")
        return sent.result()

    async def over(self) -> None:
        """Waits for the app to return."""
        await asyncio.wait_for(self._task, 5)

    def silent(self) -> bool:
        """Whether the app has sent nothing that was not taken."""
        return self._outbox.empty()


async def settle() -> None:
    """Lets every task run until it waits for something."""
    for _ in range(300):
        await asyncio.sleep(0)


def openai_client(app: Starlette) -> openai.AsyncOpenAI:
    """The official client over the HTTP library that its version is built on (httpx, later httpx2)."""
    library = importlib.import_module(openai.DefaultAsyncHttpxClient.__bases__[0].__module__.partition(".")[0])
    transport = library.ASGITransport(app)
    http_client = library.AsyncClient(transport=transport, base_url="http://router")
    return openai.AsyncOpenAI(base_url="http://router/v1", api_key="k", http_client=http_client, max_retries=0)
