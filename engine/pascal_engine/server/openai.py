"""The routes /v1/completions and /v1/chat/completions."""

import time
import uuid
from abc import ABC, abstractmethod

from starlette.responses import Response

from pascal_engine.engine import Engine
from pascal_engine.schedule.sequence import Delta, Finished
from pascal_engine.server.generation import Generation, stream, whole
from pascal_engine.server.prompts import prompt_tokens, render_chat
from pascal_engine.server.schemas import ChatBody, CompletionBody, GenerationBody
from pascal_engine.server.timings import finish_reason, openai_usage, timings

_DONE = "data: [DONE]\n\n"


def complete(engine: Engine, body: CompletionBody) -> Response:
    """/v1/completions."""
    return _respond(engine, body, prompt_tokens(engine, body.prompt), _TextShape(engine, body))


def chat(engine: Engine, body: ChatBody) -> Response:
    """/v1/chat/completions."""
    prompt = render_chat(engine, body.messages, body.chat_template_kwargs)
    return _respond(engine, body, prompt_tokens(engine, prompt), _ChatShape(engine, body))


def _respond(engine: Engine, body: GenerationBody, tokens: list[int], shape: "_Shape") -> Response:
    generation = Generation(engine.worker, body.request(engine, tokens))
    return stream(generation, shape.chunks, _DONE) if body.stream else whole(generation, shape.answer)


class _Shape(ABC):
    """The JSON objects of one answer; subclasses say what a choice looks like."""

    object_name: str
    chunk_name: str
    id_prefix: str

    def __init__(self, engine: Engine, body: GenerationBody) -> None:
        self._body = body
        self._model = body.model or engine.info.name
        self._id = f"{self.id_prefix}-{uuid.uuid4().hex}"
        self._created = int(time.time())

    def answer(self, deltas: list[Delta], finished: Finished) -> dict[str, object]:
        choice = self._whole_choice("".join(delta.text for delta in deltas)) | {
            "index": 0,
            "finish_reason": finish_reason(finished),
            "logprobs": None,
        }
        extra = {"tokens": [token for delta in deltas for token in delta.tokens]} if self._body.return_tokens else {}
        ending = {"usage": openai_usage(finished.usage), "timings": timings(finished.usage)}
        return self._envelope(self.object_name, [choice]) | ending | extra

    def chunks(self, event: Delta | Finished) -> list[dict[str, object]]:
        if isinstance(event, Finished):
            return self._last_chunks(event)
        extra = {"tokens": list(event.tokens)} if self._body.return_tokens else {}
        if not event.text and not extra:
            return []
        return [*self._opening(), self._chunk(self._part(event.text), None) | extra]

    def _last_chunks(self, finished: Finished) -> list[dict[str, object]]:
        last = self._chunk(self._empty_part(), finish_reason(finished))
        if not self._body.stream_options.include_usage:
            return [*self._opening(), last | {"timings": timings(finished.usage)}]
        ending = {"usage": openai_usage(finished.usage), "timings": timings(finished.usage)}
        return [*self._opening(), last, self._envelope(self.chunk_name, []) | ending]

    def _chunk(self, part: dict[str, object], reason: str | None) -> dict[str, object]:
        return self._envelope(self.chunk_name, [{"index": 0, **part, "finish_reason": reason, "logprobs": None}])

    def _envelope(self, name: str, choices: list[dict[str, object]]) -> dict[str, object]:
        return {
            "id": self._id,
            "object": name,
            "created": self._created,
            "model": self._model,
            "system_fingerprint": "pascal-engine",
            "choices": choices,
        }

    def _opening(self) -> list[dict[str, object]]:
        """Chunks that come before the first other one."""
        return []

    @abstractmethod
    def _whole_choice(self, text: str) -> dict[str, object]:
        """What a choice of the whole answer holds."""

    @abstractmethod
    def _part(self, text: str) -> dict[str, object]:
        """What a choice of a chunk holds."""

    @abstractmethod
    def _empty_part(self) -> dict[str, object]:
        """What the choice of the last chunk holds."""


class _TextShape(_Shape):
    object_name = chunk_name = "text_completion"
    id_prefix = "cmpl"

    def _whole_choice(self, text: str) -> dict[str, object]:
        return {"text": text}

    def _part(self, text: str) -> dict[str, object]:
        return {"text": text}

    def _empty_part(self) -> dict[str, object]:
        return {"text": ""}


class _ChatShape(_Shape):
    object_name = "chat.completion"
    chunk_name = "chat.completion.chunk"
    id_prefix = "chatcmpl"

    def __init__(self, engine: Engine, body: GenerationBody) -> None:
        super().__init__(engine, body)
        self._opened = False

    def _opening(self) -> list[dict[str, object]]:
        if self._opened:
            return []
        self._opened = True
        return [self._chunk({"delta": {"role": "assistant", "content": None}}, None)]

    def _whole_choice(self, text: str) -> dict[str, object]:
        return {"message": {"role": "assistant", "content": text}}

    def _part(self, text: str) -> dict[str, object]:
        return {"delta": {"content": text}}

    def _empty_part(self) -> dict[str, object]:
        return {"delta": {}}
