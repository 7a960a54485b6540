"""The endpoints of the Responses API."""

import asyncio

from starlette.responses import JSONResponse, Response

from pascal_engine.engine import Engine
from pascal_engine.server.chat.run import start_chat
from pascal_engine.server.counting import count_tokens
from pascal_engine.server.hygiene import cleaned
from pascal_engine.server.respond import stream, whole
from pascal_engine.server.responses.schema import InputTokensBody, ResponsesBody
from pascal_engine.server.responses.shape import ResponseShape
from pascal_engine.server.responses.translate import chat_body


async def create_response(engine: Engine, body: ResponsesBody, *, hygiene: bool) -> Response:
    """/v1/responses."""
    chat = await asyncio.to_thread(chat_body, body)
    run = await start_chat(engine, cleaned(chat) if hygiene else chat)
    shape = ResponseShape(body, body.model or engine.info.name)
    if body.stream:
        return stream(run, shape.frames, shape.frame_of_error, begin=shape.begin())
    return whole(run, shape.answer)


async def count_input(engine: Engine, body: InputTokensBody, *, hygiene: bool) -> Response:
    """/v1/responses/input_tokens: the tokens of the prompt that /v1/responses would make."""
    chat = await asyncio.to_thread(chat_body, body)
    n_tokens = await count_tokens(engine, cleaned(chat) if hygiene else chat)
    return JSONResponse({"object": "response.input_tokens", "input_tokens": n_tokens})
