"""From a chat's events to Anthropic's message, and to the events of its stream."""

import json
import uuid
from collections.abc import Iterator
from typing import Any

from pascal_engine.server.chat.events import (
    ChatEnd,
    ChatEvent,
    ContentText,
    ReasoningText,
    ToolCallArguments,
    ToolCallStart,
)
from pascal_engine.server.respond import frame

Json = dict[str, Any]

_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


class MessageShape:
    """One message under way. Its blocks come one after the other, never two at a time."""

    def __init__(self, model: str, n_prompt: int) -> None:
        self._usage = _usage(n_prompt, 0, 0)
        self._head = {"id": f"msg_{uuid.uuid4().hex}", "type": "message", "role": "assistant", "model": model}
        self._blocks: list[Json] = []
        self._arguments = ""

    def answer(self, events: list[ChatEvent]) -> Json:
        """The whole message."""
        for event in events:
            for _ in self._events(event):
                pass
        end = events[-1]
        assert isinstance(end, ChatEnd)
        return self._head | {"content": self._blocks, **_stop(end), "usage": self._usage}

    def begin(self) -> Iterator[str]:
        """What a stream begins with: how much of the prompt was cached is told at its end."""
        message: Json = self._head | {"content": [], "stop_reason": None, "stop_sequence": None, "usage": self._usage}
        yield _framed("message_start", message=message)

    def frames(self, event: ChatEvent) -> Iterator[str]:
        """The events of a stream that tell of `event`."""
        for name, fields in self._events(event):
            yield _framed(name, **fields)
            if name == "content_block_start" and fields["index"] == 0:
                yield _framed("ping")

    def _events(self, event: ChatEvent) -> Iterator[tuple[str, Json]]:
        match event:
            case ReasoningText():
                yield from self._add("thinking", event.text)
            case ContentText():
                yield from self._add("text", event.text)
            case ToolCallStart():
                yield from self._open({"type": "tool_use", "id": event.id, "name": event.name, "input": {}})
            case ToolCallArguments():
                self._arguments += event.text
                yield self._delta("input_json_delta", partial_json=event.text)
            case ChatEnd():
                yield from self._close()
                usage = event.finished.usage
                self._usage = _usage(usage.prompt_n, usage.cache_n, usage.predicted_n)
                yield "message_delta", {"delta": _stop(event), "usage": self._usage}
                yield "message_stop", {}

    def _add(self, kind: str, text: str) -> Iterator[tuple[str, Json]]:
        if not text:
            return
        if not self._blocks or self._blocks[-1]["type"] != kind:
            # No signature: it is Anthropic's proof that the thinking is its own model's.
            yield from self._open({"type": kind, kind: "", **({"signature": ""} if kind == "thinking" else {})})
        self._blocks[-1][kind] += text
        yield self._delta(f"{kind}_delta", **{kind: text})

    def _open(self, block: Json) -> Iterator[tuple[str, Json]]:
        yield from self._close()
        self._blocks.append(block)
        yield "content_block_start", {"index": len(self._blocks) - 1, "content_block": dict(block)}

    def _close(self) -> Iterator[tuple[str, Json]]:
        """Ends the block that is open, if one is."""
        if not self._blocks:
            return
        block = self._blocks[-1]
        if block["type"] == "tool_use":
            block["input"], self._arguments = _parsed(self._arguments), ""
        if block["type"] == "thinking":
            yield self._delta("signature_delta", signature="")
        yield "content_block_stop", {"index": len(self._blocks) - 1}

    def _delta(self, kind: str, **fields: str) -> tuple[str, Json]:
        return "content_block_delta", {"index": len(self._blocks) - 1, "delta": {"type": kind, **fields}}


def _framed(name: str, **fields: object) -> str:
    return frame({"type": name, **fields}, name)


def _usage(computed: int, cached: int, generated: int) -> Json:
    return {
        "input_tokens": computed,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "output_tokens": generated,
    }


def _stop(end: ChatEnd) -> Json:
    finished = end.finished
    if end.reason == "stop" and finished.reason == "word":
        return {"stop_reason": "stop_sequence", "stop_sequence": finished.stopping_word}
    return {"stop_reason": _REASONS[end.reason], "stop_sequence": None}


def _parsed(arguments: str) -> object:
    """The arguments of a call; those of one that was cut short are no JSON, and left out."""
    try:
        return json.loads(arguments)
    except ValueError:
        return {}
