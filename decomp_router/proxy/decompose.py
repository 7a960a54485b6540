"""POST /decompose: the plan of a prompt, without running it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass

from starlette.types import Receive, Scope, Send

from decomp_router.decompose.reading import Reading
from decomp_router.decompose.response import response
from decomp_router.gate.conversation import Conversation, NotAConversation
from decomp_router.plan import Plan
from decomp_router.proxy.client import Client, ClientGone
from decomp_router.proxy.judge import Reader
from decomp_router.proxy.replies import error, reply


@dataclass(frozen=True)
class Decompose:
    """An ASGI app that reads a prompt, or the last user message of a conversation."""

    reader: Reader
    clock: Callable[[], float] = time.perf_counter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers with the plan, or with 400 and what is wrong with the body."""
        client = Client(scope, receive)
        try:
            asked = _asked(await client.body())
        except ClientGone:
            return
        except NotAConversation as problem:
            await reply(send, 400, error(f"{problem}.", "invalid_request_error"))
            return
        await client.while_present(self._answer(asked, send))

    async def _answer(self, asked: Conversation, send: Send) -> None:
        begun = self.clock()
        if asked.unreadable:
            reading = Reading(Plan.atomic(asked.prompt), asked.unreadable)
        else:
            reading = await asyncio.to_thread(self.reader.read, asked.prompt, asked.context)
        await reply(send, 200, response(reading, (self.clock() - begun) * 1000))


def _asked(raw: bytes) -> Conversation:
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as problem:
        raise NotAConversation("The body is not valid JSON") from problem
    if not isinstance(body, dict) or ("prompt" in body) == ("messages" in body):
        raise NotAConversation("The body must be an object with either 'prompt' or 'messages'")
    if "messages" in body:
        return Conversation.of(body["messages"])
    prompt = body["prompt"]
    if not isinstance(prompt, str):
        raise NotAConversation("'prompt' must be text")
    return Conversation(prompt)
