"""The output items of a response while they grow: each event of the stream with what it tells."""

import uuid
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]
Told = tuple[str, Json]
"""The name of a stream's event behind `response.`, and its fields."""


def new_id(prefix: str) -> str:
    """An id that no other object has."""
    return f"{prefix}_{uuid.uuid4().hex}"


class TextItem:
    """A message, or reasoning: one part of text."""

    def __init__(self, index: int, *, reasoning: bool) -> None:
        self._name = "reasoning_text" if reasoning else "output_text"
        self._part: Json = {"type": self._name, "text": ""}
        self._place: Json = {"output_index": index, "content_index": 0}
        if reasoning:
            self.item: Json = {"id": new_id("rs"), "type": "reasoning", "summary": [], "encrypted_content": ""}
        else:
            self._part |= {"annotations": [], "logprobs": []}
            self.item = {"id": new_id("msg"), "type": "message", "role": "assistant"}
        self.item |= {"status": "in_progress", "content": []}
        self._place["item_id"] = self.item["id"]

    def open(self) -> Iterator[Told]:
        yield "output_item.added", {"output_index": self._place["output_index"], "item": dict(self.item)}
        yield "content_part.added", {**self._place, "part": dict(self._part)}

    def add(self, text: str) -> Iterator[Told]:
        self._part["text"] += text
        yield f"{self._name}.delta", {**self._place, "delta": text, **self._logprobs}

    def close(self, status: str) -> Iterator[Told]:
        self.item |= {"status": status, "content": [self._part]}
        yield f"{self._name}.done", {**self._place, "text": self._part["text"], **self._logprobs}
        yield "content_part.done", {**self._place, "part": self._part}
        yield "output_item.done", {"output_index": self._place["output_index"], "item": self.item}

    @property
    def _logprobs(self) -> Json:
        return {"logprobs": []} if self._name == "output_text" else {}


class CallItem:
    """A call of a function."""

    def __init__(self, index: int, call_id: str, name: str) -> None:
        self._index = index
        self.item: Json = {"id": new_id("fc"), "type": "function_call", "status": "in_progress"}
        self.item |= {"call_id": call_id, "name": name, "arguments": ""}
        self._place = {"output_index": index, "item_id": self.item["id"]}

    def open(self) -> Iterator[Told]:
        yield "output_item.added", {"output_index": self._index, "item": dict(self.item)}

    def add(self, text: str) -> Iterator[Told]:
        self.item["arguments"] += text
        yield "function_call_arguments.delta", {**self._place, "delta": text}

    def close(self, status: str) -> Iterator[Told]:
        self.item["status"] = status
        fields = {**self._place, "name": self.item["name"], "arguments": self.item["arguments"]}
        yield "function_call_arguments.done", fields
        yield "output_item.done", {"output_index": self._index, "item": self.item}
