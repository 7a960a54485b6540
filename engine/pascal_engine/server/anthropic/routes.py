"""The endpoints of the Anthropic Messages API."""

import asyncio

from starlette.responses import JSONResponse, Response

from pascal_engine.engine import Engine
from pascal_engine.server.anthropic.errors import body_of, frame_of, status_of
from pascal_engine.server.anthropic.schema import CountTokensBody, MessagesBody
from pascal_engine.server.anthropic.shape import MessageShape
from pascal_engine.server.anthropic.translate import chat_body
from pascal_engine.server.chat.run import start_chat
from pascal_engine.server.counting import count_tokens
from pascal_engine.server.respond import stream, whole


async def create_message(engine: Engine, body: MessagesBody, *, hygiene: bool) -> Response:
    """/v1/messages."""
    run = await start_chat(engine, await asyncio.to_thread(chat_body, body, hygiene=hygiene))
    shape = MessageShape(body.model or engine.info.name, run.n_prompt)
    if body.stream:
        return stream(run, shape.frames, frame_of, begin=shape.begin())
    return whole(run, shape.answer, body_of, status_of)


async def count_message(engine: Engine, body: CountTokensBody, *, hygiene: bool) -> Response:
    """/v1/messages/count_tokens: the tokens of the prompt that /v1/messages would make."""
    chat = await asyncio.to_thread(chat_body, body, hygiene=hygiene)
    return JSONResponse({"input_tokens": await count_tokens(engine, chat)})
