"""From the items of the Responses API to the body of a chat."""

from collections.abc import Iterator
from functools import reduce
from itertools import groupby
from typing import Any

from pascal_engine.server.chat.schema import ChatBody
from pascal_engine.server.errors import ApiError, not_supported
from pascal_engine.server.responses.schema import InputTokensBody, ResponsesBody
from pascal_engine.server.schemas import GenerationBody

Json = dict[str, Any]

_TEXTS = ("input_text", "output_text", "text", "reasoning_text", "summary_text")
_KNOWN = (*_TEXTS, "message", "function_call", "function_call_output", "reasoning")

_SAME = frozenset(GenerationBody.model_fields) - {"stream_options"}
"""Fields of every generating route, which mean the same on both."""


def chat_body(body: InputTokensBody) -> ChatBody:
    """The same request as a chat. What it asks for and cannot have is a 400."""
    instructions = [{"role": "system", "content": body.instructions}] if body.instructions else []
    fields: Json = {
        "messages": [*instructions, *_messages(body.input)],
        "tools": [_tool(tool) for tool in body.tools],
        "tool_choice": _tool_choice(body.tool_choice),
        "parallel_tool_calls": body.parallel_tool_calls,
        "reasoning_effort": body.reasoning.effort,
        "response_format": _response_format(body.text.format),
        "chat_template_kwargs": body.chat_template_kwargs,
    }
    if isinstance(body, ResponsesBody):
        fields |= {name: getattr(body, name) for name in body.model_fields_set & _SAME}
        fields |= {"max_tokens": body.max_output_tokens or body.max_tokens}
    return ChatBody.model_validate(fields)


def _messages(given: str | list[Json]) -> Iterator[Json]:
    """Items of the assistant in a row, such as reasoning and the calls that follow it, are one message."""
    if isinstance(given, str):
        yield {"role": "user", "content": given}
        return
    for is_assistant, group in groupby(map(_message, given), key=lambda message: message["role"] == "assistant"):
        messages = list(group)
        yield from [reduce(_merged, messages)] if is_assistant else messages


def _merged(turn: Json, more: Json) -> Json:
    """Two messages of the assistant as one."""
    merged = dict(turn)
    for name in ("content", "tool_calls", "reasoning_content"):
        if more.get(name):
            merged[name] = (turn[name] + more[name]) if turn.get(name) else more[name]
    return merged


def _message(item: Json) -> Json:
    match item:
        case {"type": "function_call", "call_id": str(call), "name": str(name), "arguments": str(arguments)}:
            function = {"name": name, "arguments": arguments}
            calls = [{"id": call, "type": "function", "function": function}]
            return {"role": "assistant", "content": None, "tool_calls": calls}
        case {"type": "function_call_output", "call_id": str(call), "output": output}:
            return {"role": "tool", "tool_call_id": call, "content": _parts(output)}
        case {"type": "reasoning"}:
            parts = _parts(item.get("content") or item.get("summary") or [])
            return {"role": "assistant", "content": None, "reasoning_content": "".join(part["text"] for part in parts)}
        case {"role": "user" | "system" | "developer" | "assistant" as role, "content": content}:
            if item.get("type", "message") == "message":
                return {"role": role, "content": _parts(content)}
        case {"type": str(kind)} if kind not in _KNOWN:
            raise not_supported(f"an item of type '{kind}'")
    raise _damaged("an item", item)


def _parts(content: object) -> list[Json]:
    """The text parts of a content."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise ApiError(400, "content must be a text or a list of parts, each an object with 'type'")
    return [_part(part) for part in content]


def _part(part: object) -> Json:
    match part:
        case {"type": str(kind), "text": str(text)} if kind in _TEXTS:
            return {"type": "text", "text": text}
        case {"type": "refusal", "refusal": str(text)}:
            return {"type": "text", "text": text}
        case {"type": str(kind)} if kind not in _TEXTS:
            raise not_supported(f"content of type '{kind}'")
    raise _damaged("a part", part)


def _damaged(what: str, given: object) -> ApiError:
    kind = given.get("type", "message") if isinstance(given, dict) else None
    return ApiError(400, f"{what} of 'input' of type '{kind}' lacks a field, or has one of a wrong type")


def _tool(tool: Json) -> Json:
    if tool.get("type") != "function":
        raise not_supported(f"a tool of type '{tool.get('type')}' (functions are)")
    if not isinstance(tool.get("name"), str):
        raise ApiError(400, "each of 'tools' must have a 'name'")
    names = ("name", "description", "parameters", "strict")
    return {"type": "function", "function": {name: tool[name] for name in names if tool.get(name) is not None}}


def _tool_choice(choice: str | Json) -> str | Json:
    match choice:
        case {"type": "function", "name": str(name)}:
            return {"type": "function", "function": {"name": name}}
        case {"type": str(kind)}:
            raise not_supported(f"'tool_choice' of type '{kind}'")
    return choice


def _response_format(form: Json) -> Json:
    match form:
        case {"type": "json_schema", "schema": schema}:
            return {"type": "json_schema", "json_schema": {"schema": schema, "name": form.get("name", "")}}
        case {"type": "text" | "json_object" as kind}:
            return {"type": kind}
    raise ApiError(400, "'text.format' must have the type 'text', 'json_object' or 'json_schema', the last a 'schema'")
