"""What an answer says, whichever route gave it, whole or as a stream."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.engine.harness import Json


@dataclass
class Said:
    """Of the first choice: text, thought, and (name, arguments as parsed) of each call."""

    text: str = ""
    thought: str = ""
    names: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)

    def meaning(self) -> tuple[object, ...]:
        """Equal for answers that differ in the white space of their JSON only."""
        return _parsed(self.text.strip()), self.thought.strip(), self.names, [_parsed(text) for text in self.arguments]

    def add(self, part: Json) -> None:
        """Takes in a message of a chat, or a delta of one."""
        self.text += part.get("content") or ""
        self.thought += part.get("reasoning_content") or ""
        for call in part.get("tool_calls") or []:
            self._call(call["function"].get("name"), call["function"].get("arguments", ""))

    def add_block(self, block: Json) -> None:
        """Takes in a content block of /v1/messages or an item of /v1/responses; or a delta of one."""
        match block.get("type"):
            case "text" | "text_delta" | "output_text":
                self.text += block["text"]
            case "thinking" | "thinking_delta":
                self.thought += block["thinking"]
            case "tool_use":
                self._call(block["name"], json.dumps(block["input"]) if block.get("input") else "")
            case "input_json_delta":
                self._call(None, block["partial_json"])
            case "reasoning":
                self.thought += "".join(part["text"] for part in block["content"])
            case "message":
                for part in block["content"]:
                    self.add_block(part)
            case "function_call":
                self._call(block["name"], block["arguments"])

    def _call(self, name: str | None, arguments: str) -> None:
        if name is not None:
            self.names.append(name)
            self.arguments.append("")
        self.arguments[-1] += arguments


def said(answer: Json) -> Said:
    """`answer` as `record.answer` gives it."""
    found = Said()
    for data in (data for _, data in answer["events"]) if "events" in answer else [answer["body"]]:
        if isinstance(data, dict):
            _add(found, data)
    return found


def _add(found: Said, data: Json) -> None:
    if choices := data.get("choices"):
        choice = choices[0]
        found.add(choice.get("message") or choice.get("delta") or {"content": choice.get("text")})
    elif data.get("type") == "message":
        for block in data["content"]:
            found.add_block(block)
    elif data.get("object") == "response":
        for item in data["output"]:
            found.add_block(item)
    elif data.get("type") == "content_block_start":
        found.add_block(data["content_block"])
    elif data.get("type") == "content_block_delta":
        found.add_block(data["delta"])
    elif data.get("type") == "response.output_item.done":
        found.add_block(data["item"])
    elif isinstance(data.get("content"), str):
        found.add(data)


def contradictions(request: Json, answer: Json) -> Iterator[str]:
    """What no answer to `request` may be, whatever the model."""
    body = request["body"] if isinstance(request["body"], dict) else {}
    if answer["status"] != 200 or not ("events" in answer or "body" in answer):
        return
    stops = body.get("stop") or body.get("stop_sequences") or []
    text = said(answer).text
    for word in [stops] if isinstance(stops, str) else stops:
        if word in text:
            yield f"the stop string {word!r} is in the answer"
    events = [data for _, data in answer.get("events", [])] or [answer["body"]]
    if len(ids := {data["id"] for data in events if isinstance(data, dict) and "id" in data and "choices" in data}) > 1:
        yield f"several ids in one stream: {ids}"
    for part in _objects(events):
        yield from _miscounted(part, body)


def _objects(value: Any) -> Iterator[Json]:  # noqa: ANN401
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _objects(item)


def _miscounted(part: Json, body: Json) -> Iterator[str]:
    first = part.get("prompt_tokens", part.get("input_tokens"))
    second = part.get("completion_tokens", part.get("output_tokens", 0))
    if "total_tokens" in part and part["total_tokens"] != first + second:
        yield f"{first} and {second} tokens are not {part['total_tokens']}"
    if "stop_type" in part and "timings" in part:
        yield from _final(part, body)
    asked = body.get("n_probs") or body.get("top_logprobs") or body.get("logprobs")
    for logs, key in (("top_logprobs", "logprob"), ("top_probs", "prob")):
        values = [entry[key] for entry in part.get(logs) or [] if key in entry]  # OpenAI's legacy shape has no such key
        if values != sorted(values, reverse=True):
            yield f"{logs} are not sorted"
        # Of what is left after sampling there may be less.
        if asked is not True and values and (len(values) > asked or (len(values) < asked and key == "logprob")):
            yield f"{len(values)} {logs}"


def _final(part: Json, body: Json) -> Iterator[str]:
    limit, timings = body.get("n_predict", -1), part["timings"]
    # Where 0 are asked for, llama-server makes one.
    if part["tokens_predicted"] > limit > 0 or (part["stop_type"] == "limit" and part["tokens_predicted"] < limit):
        yield f"{part['tokens_predicted']} tokens end by '{part['stop_type']}' where {limit} were asked for"
    if timings["cache_n"] + timings["prompt_n"] != part["tokens_evaluated"]:
        yield "cached and computed tokens are not the prompt's"
    if timings["predicted_n"] != part["tokens_predicted"]:
        yield "the timings count other tokens"
    if body.get("return_tokens") and len(part["tokens"]) != part["tokens_predicted"]:
        yield "not all tokens are returned"


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text
