"""llama-server's own route, /completion."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from starlette.responses import Response
from starlette.types import Send

from pascal_engine.engine import Engine
from pascal_engine.schedule.sequence import Finished, GenerationRequest
from pascal_engine.server.errors import ApiError
from pascal_engine.server.generation import GenerationResponse, Generations, send_json, send_stream
from pascal_engine.server.native.answer import Answer
from pascal_engine.server.native.schemas import NativeCompletionBody
from pascal_engine.server.prompts import prompt_tokens


async def complete(engine: Engine, body: NativeCompletionBody) -> Response:
    """Starts an answer to each prompt and sends them in one piece or as a stream."""
    requests = await asyncio.to_thread(_requests, engine, body)  # tokens and grammars may take a while
    run = _Run(engine, body, Generations(engine.worker, requests))
    return GenerationResponse(run.generations, run.stream if body.stream else run.whole)


def _requests(engine: Engine, body: NativeCompletionBody) -> list[GenerationRequest]:
    prompts = [prompt_tokens(engine, prompt) for prompt in body.prompts()]
    first = body.request(engine, prompts[0])
    return [replace(first, tokens=tuple(tokens)) for tokens in prompts]


class _Run:
    """The answers while they come."""

    def __init__(self, engine: Engine, body: NativeCompletionBody, generations: Generations) -> None:
        self.generations = generations
        self._answers = [Answer(engine, body, sequence, index) for index, sequence in enumerate(generations.sequences)]

    async def whole(self, send: Send) -> None:
        """One object, or a list of them for several prompts."""
        results: list[dict[str, Any]] = [{} for _ in self._answers]
        try:
            async for index, event in self.generations.events():
                if isinstance(event, Finished):
                    results[index] = self._answers[index].whole(event)
                else:
                    self._answers[index].add(event)
        except ApiError as error:
            await send_json(send, error.status, error.body)
        else:
            await send_json(send, 200, results[0] if len(results) == 1 else results)

    async def stream(self, send: Send) -> None:
        """Server-sent events; those of several prompts come mixed, with their `index`."""
        await send_stream(send, self._chunks(), end="")

    async def _chunks(self) -> AsyncIterator[dict[str, object]]:
        async for index, event in self.generations.events():
            yield self._answers[index].chunk(event)
