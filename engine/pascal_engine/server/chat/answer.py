"""The route /v1/chat/completions: the JSON objects of an answer, whole or as a stream."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from starlette.responses import JSONResponse, Response

from pascal_engine.engine import Engine
from pascal_engine.schedule.sequence import Delta, Usage
from pascal_engine.server.chat.events import (
    ChatEnd,
    ChatEvent,
    ChatPart,
    ContentText,
    PromptProgress,
    ReasoningText,
    ToolCallArguments,
    ToolCallStart,
)
from pascal_engine.server.chat.logprobs import LogprobsShape
from pascal_engine.server.chat.prompt import render_chat
from pascal_engine.server.chat.run import ChatRun, start_choices
from pascal_engine.server.chat.schema import MOST_LOGPROBS, ChatBody, TemplateBody
from pascal_engine.server.respond import frame, stream, whole
from pascal_engine.server.timings import openai_usage, progress, timings

_DONE = "data: [DONE]\n\n"


async def apply_template(engine: Engine, body: TemplateBody) -> Response:
    """The prompt that a chat is turned into."""
    return JSONResponse({"prompt": await asyncio.to_thread(render_chat, engine, body)})


async def respond(engine: Engine, body: ChatBody) -> Response:
    """The next message of a chat, in OpenAI's form."""
    choices = Choices(await start_choices(engine, body))
    shape = _Shape(engine, body, choices)
    if body.stream:
        return stream(choices, lambda event: map(frame, shape.chunks(event)), end=_DONE)
    return whole(choices, shape.answer)


@dataclass(frozen=True)
class ChoiceEvent:
    """An event of one of several answers to the same chat."""

    index: int
    event: ChatEvent


class Choices:
    """Several answers as one stream of events, as they come."""

    def __init__(self, runs: Sequence[ChatRun]) -> None:
        self._runs = runs

    def usage(self, index: int) -> Usage:
        """Tokens and times of one answer so far."""
        return self._runs[index].usage()

    def cancel(self) -> None:
        for run in self._runs:
            run.cancel()

    async def events(self) -> AsyncIterator[ChoiceEvent]:
        """The events of all; ends when all have ended."""
        queue: asyncio.Queue[ChoiceEvent | Exception] = asyncio.Queue()
        tasks = [asyncio.ensure_future(_collect(index, run, queue)) for index, run in enumerate(self._runs)]
        left = len(tasks)
        try:
            while left:
                event = await queue.get()
                if isinstance(event, Exception):
                    raise event
                yield event
                left -= isinstance(event.event, ChatEnd)
        finally:
            for task in tasks:
                task.cancel()


async def _collect(index: int, run: ChatRun, queue: "asyncio.Queue[ChoiceEvent | Exception]") -> None:
    try:
        async for event in run.events():
            queue.put_nowait(ChoiceEvent(index, event))
    except Exception as error:  # it belongs to whoever reads the queue
        queue.put_nowait(error)


@dataclass
class _Choice:
    """What one answer came to."""

    reasoning: list[str] = field(default_factory=list)
    content: list[str] = field(default_factory=list)
    calls: list[dict[str, str]] = field(default_factory=list)
    deltas: list[Delta] = field(default_factory=list)
    reason: str = "stop"

    def add(self, event: ChatEvent) -> None:
        self.deltas += event.deltas
        match event:
            case ReasoningText(text):
                self.reasoning.append(text)
            case ContentText(text):
                self.content.append(text)
            case ToolCallStart(_, call_id, name):
                self.calls.append({"id": call_id, "name": name, "arguments": ""})
            case ToolCallArguments(index, text):
                self.calls[index]["arguments"] += text
            case ChatEnd(reason):
                self.reason = reason

    @property
    def message(self) -> dict[str, object]:
        message: dict[str, object] = {"role": "assistant", "content": "".join(self.content)}
        if self.reasoning:
            message["reasoning_content"] = "".join(self.reasoning)
        if self.calls:
            message["tool_calls"] = [
                {"id": call["id"], "type": "function", "function": {k: call[k] for k in ("name", "arguments")}}
                for call in self.calls
            ]
        return message


class _Shape:
    """The JSON objects of one response."""

    def __init__(self, engine: Engine, body: ChatBody, sources: Choices) -> None:
        self._body, self._sources = body, sources
        most = MOST_LOGPROBS if body.top_logprobs is None else body.top_logprobs
        self._logprobs = LogprobsShape(engine.tokenizer, most) if body.logprobs else None
        self._model = body.model or engine.info.name
        self._id = f"chatcmpl-{uuid.uuid4().hex}"
        self._created = int(time.time())
        self._opened: set[int] = set()
        self._usages: list[Usage] = []

    def answer(self, events: list[ChoiceEvent]) -> dict[str, object]:
        choices = [_Choice() for _ in range(self._body.n)]
        for event in events:
            choices[event.index].add(event.event)
            if isinstance(event.event, ChatEnd):
                self._usages.append(event.event.finished.usage)
        shown = [self._choice(index, choice) for index, choice in enumerate(choices)]
        return self._envelope("chat.completion", shown) | self._ending()

    def chunks(self, item: ChoiceEvent) -> list[dict[str, object]]:
        event = item.event
        if isinstance(event, ChatEnd):
            return self._last_chunks(item.index, event)
        if isinstance(event, PromptProgress):
            chunks = [self._role(item.index) | {"prompt_progress": progress(event.progress)}]
        else:
            chunks = [*self._opening(item.index), self._chunk(item.index, _delta_of(event), None, event.deltas)]
        if self._body.timings_per_token:
            chunks[-1] |= {"timings": timings(self._sources.usage(item.index))}
        return chunks

    def _last_chunks(self, index: int, end: ChatEnd) -> list[dict[str, object]]:
        self._usages.append(end.finished.usage)
        chunks = [*self._opening(index), self._chunk(index, {}, end.reason, end.deltas)]
        if len(self._usages) < self._body.n:
            return chunks
        if self._body.stream_options.include_usage:
            return [*chunks, self._envelope("chat.completion.chunk", []) | self._ending()]
        chunks[-1] |= {"timings": timings(self._usages[0])}
        return chunks

    def _opening(self, index: int) -> list[dict[str, object]]:
        """Each choice begins with its role."""
        if index in self._opened:
            return []
        self._opened.add(index)
        return [self._role(index)]

    def _role(self, index: int) -> dict[str, object]:
        return self._chunk(index, {"role": "assistant", "content": None}, None, ())

    def _choice(self, index: int, choice: _Choice) -> dict[str, object]:
        shown: dict[str, object] = {"index": index, "message": choice.message, "finish_reason": choice.reason}
        shown["logprobs"] = self._logprobs_of(choice.deltas)
        if self._body.return_tokens:
            shown["tokens"] = [token for delta in choice.deltas for token in delta.tokens]
        return shown

    def _chunk(
        self, index: int, delta: dict[str, object], reason: str | None, deltas: Sequence[Delta]
    ) -> dict[str, object]:
        logprobs = self._logprobs_of(deltas) if deltas else None
        choice: dict[str, object] = {"index": index, "delta": delta, "finish_reason": reason, "logprobs": logprobs}
        if self._body.return_tokens:
            choice["tokens"] = [token for delta in deltas for token in delta.tokens]
        return self._envelope("chat.completion.chunk", [choice])

    def _logprobs_of(self, deltas: Sequence[Delta]) -> dict[str, object] | None:
        if self._logprobs is None:
            return None
        return {"content": self._logprobs.content(deltas), "refusal": None}

    def _ending(self) -> dict[str, object]:
        """Usage of all choices together: the prompt counts once. The times are the first choice's."""
        usage = openai_usage(self._usages[0])
        if len(self._usages) > 1:
            made, prompt = sum(each.predicted_n for each in self._usages), self._usages[0].prompt_total
            usage |= {"completion_tokens": made, "total_tokens": prompt + made}
        return {"usage": usage, "timings": timings(self._usages[0])}

    def _envelope(self, name: str, choices: list[dict[str, object]]) -> dict[str, object]:
        return {
            "id": self._id,
            "object": name,
            "created": self._created,
            "model": self._model,
            "system_fingerprint": "pascal-engine",
            "choices": choices,
        }


def _delta_of(part: ChatPart) -> dict[str, object]:
    match part:
        case ReasoningText(text):
            return {"reasoning_content": text}
        case ContentText(text):
            return {"content": text}
        case ToolCallStart(index, call_id, name):
            function = {"name": name, "arguments": ""}
            return {"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": function}]}
        case ToolCallArguments(index, text):
            return {"tool_calls": [{"index": index, "function": {"arguments": text}}]}
