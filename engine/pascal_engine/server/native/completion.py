"""llama-server's own route, /completion."""

from collections.abc import Iterator
from typing import Any

from starlette.responses import Response

from pascal_engine.engine import Engine
from pascal_engine.schedule.sequence import Embedded, Finished, GenerationRequest
from pascal_engine.server.generations import Generations, Indexed
from pascal_engine.server.native.answer import Answer
from pascal_engine.server.native.schemas import NativeCompletionBody
from pascal_engine.server.preparing import prepared
from pascal_engine.server.prompts import prompt_tokens
from pascal_engine.server.respond import frame, stream, whole


async def complete(engine: Engine, body: NativeCompletionBody) -> Response:
    """Answers each prompt, in one piece or as a stream."""
    requests = await prepared(_requests, engine, body)  # tokens and grammars may take a while
    run = Generations(engine, requests)
    answers = [Answer(engine, body, request, index) for index, request in enumerate(requests)]

    def build(events: list[Indexed]) -> dict[str, Any] | list[dict[str, Any]]:
        """One object, or a list of them for several prompts."""
        results: list[dict[str, Any]] = [{} for _ in answers]
        for index, event in events:
            if isinstance(event, Finished):
                results[index] = answers[index].whole(event)
            elif not isinstance(event, Embedded):
                answers[index].add(event)
        return results[0] if len(results) == 1 else results

    def frames(indexed: Indexed) -> Iterator[str]:
        """Those of several prompts come mixed, with their `index`."""
        index, event = indexed
        if not isinstance(event, Embedded):
            yield frame(answers[index].chunk(event, run.sequence(index)))

    return stream(run, frames) if body.stream else whole(run, build)


def _requests(engine: Engine, body: NativeCompletionBody) -> list[GenerationRequest]:
    return body.requests(engine, [prompt_tokens(engine, prompt) for prompt in body.prompts()])
