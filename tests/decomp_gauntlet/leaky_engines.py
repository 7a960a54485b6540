"""Scripted engines that decode several requests in turns, and let them bleed into one another in various ways."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message

VOCABULARY = [f" {first}{last}" for first in "aeiouy" for last in "bcdfghjklmnpqrstvwxz"]
CODEWORD = re.compile(r"\b(?:[bdfgklmnprstvz][aeiou]){5}\b")
Top = list[tuple[str, float]]


@dataclass
class Slot:
    """What a sequence needs to go on."""

    context: str = ""
    out: list[str] = field(default_factory=list)
    active: bool = False
    n_steps: int = 0


class ScriptedEngine:
    """A language model made of hashes: the next token depends on every token before. One that obeys says the codewords
    of its context over and over."""

    def __init__(self, *, obeys: bool = False, takes: tuple[str, ...] = ("logprobs", "return_tokens")) -> None:
        self.obeys, self.takes = obeys, takes
        self.n_begun = 0
        self.slots = [Slot() for _ in range(4)]
        self._free: asyncio.Queue[Slot] = asyncio.Queue()
        for slot in self.slots:
            self._free.put_nowait(slot)
        self.app = Starlette(routes=[Route("/v1/chat/completions", self.chat, methods=["POST"])])

    async def chat(self, request: Request) -> Response:
        body = await request.json()
        for name in ("logprobs", "return_tokens", "ignore_eos", "cache_prompt"):
            if name in body and name not in self.takes:
                return JSONResponse({"error": {"message": f"'{name}' is not known"}}, 400)
        if body.get("stream"):
            return StreamingResponse(self.stream(body), media_type="text/event-stream")
        return JSONResponse({"choices": [{"message": {"content": "I"}}], "usage": {"prompt_tokens": 11}})

    async def stream(self, body: dict[str, Any]) -> AsyncIterator[str]:
        slot = await self._free.get()
        try:
            self.begin(slot, json.dumps(body["messages"]))
            for _ in range(body["max_tokens"]):
                token, top = self.step(slot)
                slot.n_steps += 1
                yield f"data: {json.dumps(self.chunk(token, top))}\n\n"
                await asyncio.sleep(0)  # the others' turn
            yield "data: [DONE]\n\n"
        finally:
            slot.active = False
            self._free.put_nowait(slot)

    def begin(self, slot: Slot, context: str) -> None:
        self.n_begun += 1
        slot.context, slot.out, slot.active, slot.n_steps = context, [], True, 0

    def step(self, slot: Slot) -> tuple[str, Top]:
        top = self.think(slot)
        slot.out.append(top[0][0])
        return top[0][0], top

    def think(self, slot: Slot) -> Top:
        """The likeliest next tokens; every fourth choice or so is a close one."""
        if self.obeys and (words := dict.fromkeys(CODEWORD.findall(slot.context))):
            said = " ".join(words) + " "
            position = len("".join(slot.out)) % len(said)
            return [(said[position : position + 2], -0.01), (" no", -6.0)]
        digest = hashlib.sha256((slot.context + "".join(slot.out)).encode()).digest()
        gap = 0.01 if digest[0] < 64 else 3.0
        first = int.from_bytes(digest[1:3]) % len(VOCABULARY)
        ranked = [VOCABULARY[(first + 7 * rank) % len(VOCABULARY)] for rank in range(3)]
        return [(ranked[0], -0.5), (ranked[1], -0.5 - gap), (ranked[2], -5.0)]

    def beside(self, slot: Slot) -> list[Slot]:
        return [other for other in self.slots if other.active and other is not slot]

    def chunk(self, token: str, top: Top) -> dict[str, Any]:
        choice: dict[str, Any] = {"index": 0, "delta": {"content": token}}
        if "logprobs" in self.takes:
            entries = [{"token": text, "logprob": logprob} for text, logprob in top]
            chosen = next(entry for entry in entries if entry["token"] == token)
            choice["logprobs"] = {"content": [{**chosen, "top_logprobs": entries}]}
        chunk: dict[str, Any] = {"choices": [choice]}
        if "return_tokens" in self.takes:
            chunk["tokens"] = [int.from_bytes(token.encode())]
        return chunk


class Swapping(ScriptedEngine):
    """At their eighth token two slots get each other's state."""

    def step(self, slot: Slot) -> tuple[str, Top]:
        if slot.n_steps == 8 and (others := self.beside(slot)):
            other = others[0]
            slot.context, other.context = other.context, slot.context
            slot.out, other.out = other.out, slot.out
        return super().step(slot)


class Leaking(ScriptedEngine):
    """A slot keeps what the request before had in it."""

    def begin(self, slot: Slot, context: str) -> None:
        super().begin(slot, slot.context[-400:] + context)


class Mixing(ScriptedEngine):
    """Once in an answer the token is that of another slot."""

    def step(self, slot: Slot) -> tuple[str, Top]:
        others = self.beside(slot)
        if slot.n_steps != 12 or not others:
            return super().step(slot)
        top = self.think(others[-1])
        slot.out.append(top[0][0])
        return top[0][0], top


class Moody(ScriptedEngine):
    """Every third answer, alone or not, is another one."""

    def begin(self, slot: Slot, context: str) -> None:
        super().begin(slot, context + ("!" if self.n_begun % 3 == 0 else ""))


class Rounding(ScriptedEngine):
    """Beside others, close choices fall the other way: no bleed, only numbers that depend on the batch."""

    def step(self, slot: Slot) -> tuple[str, Top]:
        (first, best), (second, next_best), *rest = self.think(slot)
        if self.beside(slot) and best - next_best < 0.1:
            first, second = second, first
        slot.out.append(first)
        return first, [(first, best), (second, next_best), *rest]


class Streaming(httpx.AsyncBaseTransport):
    """Like httpx.ASGITransport, but hands out each chunk when it is sent, and tells the app when we hang up."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        inbox: asyncio.Queue[Message] = asyncio.Queue()
        outbox: asyncio.Queue[Message] = asyncio.Queue()
        inbox.put_nowait({"type": "http.request", "body": await request.aread(), "more_body": False})
        path = request.url.path
        scope = {
            "type": "http", "method": request.method, "path": path, "raw_path": path.encode(), "query_string": b"",
            "headers": [(name.lower(), value) for name, value in request.headers.raw],
        }  # fmt: skip
        task = asyncio.create_task(self.app(scope, inbox.get, outbox.put))
        start = await outbox.get()
        return httpx.Response(start["status"], headers=start["headers"], stream=_Body(inbox, outbox, task))


class _Body(httpx.AsyncByteStream):
    def __init__(self, inbox: asyncio.Queue[Message], outbox: asyncio.Queue[Message], task: asyncio.Task[None]) -> None:
        self._inbox, self._outbox, self._task = inbox, outbox, task

    async def __aiter__(self) -> AsyncIterator[bytes]:
        more = True
        while more:
            message = await self._outbox.get()
            more = message.get("more_body", False)
            yield message.get("body", b"")

    async def aclose(self) -> None:
        self._inbox.put_nowait({"type": "http.disconnect"})
        await self._task
