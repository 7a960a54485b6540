"""From a chat's events to a response, and to the events of its stream."""

import itertools
import time
from collections.abc import Iterator
from typing import Any

from pascal_engine.schedule.sequence import Usage
from pascal_engine.server.chat.events import (
    ChatEnd,
    ChatEvent,
    ContentText,
    ReasoningText,
    ToolCallArguments,
    ToolCallStart,
)
from pascal_engine.server.errors import ApiError
from pascal_engine.server.respond import frame
from pascal_engine.server.responses.items import CallItem, TextItem, Told, new_id
from pascal_engine.server.responses.schema import ResponsesBody
from pascal_engine.server.timings import timings

Json = dict[str, Any]


class ResponseShape:
    """One response under way. Its items come one after the other, never two at a time."""

    def __init__(self, body: ResponsesBody, model: str) -> None:
        self._response = _head(body, model)
        self._items: list[TextItem | CallItem] = []
        self._kind: type[ChatEvent] | None = None
        self._n_reasoning = 0
        self._numbers = itertools.count()

    def answer(self, events: list[ChatEvent]) -> Json:
        """The whole response."""
        for event in events:
            for _ in self._events(event):
                pass
        return self._response

    def begin(self) -> Iterator[str]:
        """What a stream begins with."""
        for name in ("created", "in_progress"):
            yield self._framed(name, {"response": self._response})

    def frames(self, event: ChatEvent) -> Iterator[str]:
        """The events of a stream that tell of `event`."""
        for name, fields in self._events(event):
            yield self._framed(name, fields)

    def frame_of_error(self, error: ApiError) -> str:
        """The event that ends a stream where the engine fails."""
        fields = {"code": "server_error", "message": str(error), "param": None}
        return frame({"type": "error", "sequence_number": next(self._numbers), **fields}, "error")

    def _events(self, event: ChatEvent) -> Iterator[Told]:
        match event:
            case ReasoningText() | ContentText():
                reasoning = isinstance(event, ReasoningText)
                self._n_reasoning += sum(len(delta.tokens) for delta in event.deltas) if reasoning else 0
                if event.text:
                    yield from self._add_text(event.text, reasoning=reasoning)
            case ToolCallStart():
                yield from self._open(CallItem(len(self._items), event.id, event.name), ToolCallStart)
            case ToolCallArguments():
                yield from self._items[-1].add(event.text)
            case ChatEnd():
                yield from self._end(event)

    def _add_text(self, text: str, *, reasoning: bool) -> Iterator[Told]:
        kind = ReasoningText if reasoning else ContentText
        if self._kind is not kind:
            yield from self._open(TextItem(len(self._items), reasoning=reasoning), kind)
        yield from self._items[-1].add(text)

    def _open(self, item: TextItem | CallItem, kind: type[ChatEvent]) -> Iterator[Told]:
        yield from self._close("completed")
        self._items.append(item)
        self._kind = kind
        yield from item.open()

    def _close(self, status: str) -> Iterator[Told]:
        if self._items:
            yield from self._items[-1].close(status)

    def _end(self, end: ChatEnd) -> Iterator[Told]:
        status = "incomplete" if end.reason == "length" else "completed"
        yield from self._close(status)
        self._response |= {
            "status": status,
            "incomplete_details": {"reason": "max_output_tokens"} if end.reason == "length" else None,
            "completed_at": int(time.time()) if status == "completed" else None,
            "output": [item.item for item in self._items],
            "usage": _usage(end.finished.usage, self._n_reasoning),
        }
        yield status, {"response": self._response, "timings": timings(end.finished.usage)}

    def _framed(self, name: str, fields: Json) -> str:
        content = {"type": f"response.{name}", "sequence_number": next(self._numbers), **fields}
        return frame(content, content["type"])


def _head(body: ResponsesBody, model: str) -> Json:
    """A response that has not begun, with the fields of its request."""
    return {
        "id": new_id("resp"),
        "object": "response",
        "created_at": int(time.time()),
        "status": "in_progress",
        "background": False,
        "completed_at": None,
        "error": None,
        "incomplete_details": None,
        "instructions": body.instructions,
        "max_output_tokens": body.max_output_tokens,
        "metadata": body.metadata,
        "model": model,
        "output": [],
        "parallel_tool_calls": body.parallel_tool_calls,
        "previous_response_id": None,
        "reasoning": {"effort": body.reasoning.effort, "summary": None},
        "store": False,
        "temperature": body.temperature,
        "text": {"format": body.text.format, "verbosity": "medium"},
        "tool_choice": body.tool_choice,
        "tools": body.tools,
        "top_p": body.top_p,
        "truncation": "disabled",
        "usage": None,
        "user": body.user or None,
    }


def _usage(usage: Usage, n_reasoning: int) -> Json:
    return {
        "input_tokens": usage.prompt_total,
        "input_tokens_details": {"cached_tokens": usage.cache_n},
        "output_tokens": usage.predicted_n,
        "output_tokens_details": {"reasoning_tokens": n_reasoning},
        "total_tokens": usage.prompt_total + usage.predicted_n,
    }
