"""llama-server's own route, /completion."""

from dataclasses import asdict

from starlette.responses import Response

from pascal_engine.engine import Engine
from pascal_engine.schedule.sequence import Delta, Finished
from pascal_engine.server.generation import Generation, stream, whole
from pascal_engine.server.prompts import prompt_tokens
from pascal_engine.server.schemas import CompletionBody
from pascal_engine.server.timings import timings


def complete(engine: Engine, body: CompletionBody) -> Response:
    """Starts the generation and answers in one piece or as a stream."""
    tokens = prompt_tokens(engine, body.prompt)
    generation = Generation(engine.worker, body.request(tokens))
    shape = _Shape(engine, body, len(tokens))
    return stream(generation, shape.chunks, end="") if body.stream else whole(generation, shape.answer)


class _Shape:
    """The JSON objects of one answer."""

    def __init__(self, engine: Engine, body: CompletionBody, n_prompt: int) -> None:
        self._engine, self._body, self._n_prompt = engine, body, n_prompt
        self._n_predicted = 0

    def answer(self, deltas: list[Delta], finished: Finished) -> dict[str, object]:
        tokens = [token for delta in deltas for token in delta.tokens]
        return self._final(
            finished, "".join(delta.text for delta in deltas), tokens if self._body.return_tokens else []
        )

    def chunks(self, event: Delta | Finished) -> list[dict[str, object]]:
        if isinstance(event, Finished):
            return [self._final(event, "", [])]
        self._n_predicted += len(event.tokens)
        return [
            {
                "index": 0,
                "content": event.text,
                "tokens": list(event.tokens),
                "stop": False,
                "tokens_predicted": self._n_predicted,
                "tokens_evaluated": self._n_prompt,
            }
        ]

    def _final(self, finished: Finished, content: str, tokens: list[int]) -> dict[str, object]:
        body, usage = self._body, finished.usage
        request = body.request([])
        settings = asdict(request.sampling) | {"n_predict": body.limit, "stop": request.stop, "stream": body.stream}
        return {
            "index": 0,
            "content": content,
            "tokens": tokens,
            "id_slot": finished.slot,
            "stop": True,
            "model": self._engine.info.name,
            "tokens_predicted": usage.predicted_n,
            "tokens_evaluated": usage.prompt_total,
            "generation_settings": settings | {"n_ctx": self._engine.scheduler.n_ctx, "ignore_eos": body.ignore_eos},
            "prompt": body.prompt,
            "has_new_line": "\n" in content,
            "truncated": finished.truncated,
            "stop_type": finished.reason,
            "stopping_word": finished.stopping_word,
            "tokens_cached": usage.prompt_total + max(usage.predicted_n - 1, 0),
            "timings": timings(usage),
        }
