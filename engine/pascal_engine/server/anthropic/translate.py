"""From Anthropic's messages to the body of a chat."""

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from pascal_engine.server.anthropic.schema import Blocks, CountTokensBody, MessagesBody, Turn
from pascal_engine.server.chat.schema import ChatBody
from pascal_engine.server.errors import ApiError, not_supported
from pascal_engine.server.hygiene import without_volatile_headers

Json = dict[str, Any]

_KNOWN = ("text", "thinking", "tool_use", "tool_result")


def chat_body(body: CountTokensBody, *, hygiene: bool) -> ChatBody:
    """The same request as a chat, with `hygiene` without volatile header lines at the start of the system prompt's
    blocks. What it asks for and cannot have is a 400."""
    fields: Json = {
        "messages": [*_system(body.system, hygiene=hygiene), *_messages(body.messages)],
        "tools": [_tool(tool) for tool in body.tools],
        "chat_template_kwargs": _template_variables(body),
        "reasoning_effort": body.output_config.effort,
        "response_format": _response_format(body.output_config.format),
        **_tool_choice(body),
    }
    if isinstance(body, MessagesBody):
        same = ("model", "max_tokens", "stream", "temperature", "top_p", "top_k")
        fields |= {name: getattr(body, name) for name in same} | {"stop": body.stop_sequences}
    return ChatBody.model_validate(fields)


def _system(system: Blocks, *, hygiene: bool) -> list[Json]:
    """Blocks stand together without anything between them, as with llama-server."""
    texts = [str(_text_part(block)["text"]) for block in _blocks(system)]
    text = "".join(map(without_volatile_headers, texts) if hygiene else texts)
    return [{"role": "system", "content": text}] if text else []


def _messages(turns: list[Turn]) -> Iterator[Json]:
    """Turns of one role in a row are one turn."""
    for role, group in groupby(turns, key=lambda turn: turn.role):
        blocks = [block for turn in group for block in _blocks(turn.content)]
        if not blocks:
            raise ApiError(400, f"a message of the {role} has no content; give at least one block")
        if role == "system":
            yield {"role": role, "content": [_text_part(block) for block in blocks]}
        else:
            yield from _assistant(blocks) if role == "assistant" else _user(blocks)


def _assistant(blocks: list[Json]) -> Iterator[Json]:
    """Text, thinking and calls of tools are fields of one message."""
    texts, thoughts, calls = [], [], []
    for block in blocks:
        match block:
            case {"type": "thinking", "thinking": str(thought)}:
                thoughts.append(thought)
            case {"type": "redacted_thinking"}:
                pass  # only whoever encrypted it can read it
            case {"type": "tool_use", "id": str(call), "name": str(name), "input": dict(given)}:
                function = {"name": name, "arguments": json.dumps(given, ensure_ascii=False)}
                calls.append({"id": call, "type": "function", "function": function})
            case _:
                texts.append(_text_part(block))
    message: Json = {"role": "assistant", "content": texts or (None if calls or thoughts else "")}
    message |= {"reasoning_content": "".join(thoughts)} if thoughts else {}
    yield message | ({"tool_calls": calls} if calls else {})


def _user(blocks: list[Json]) -> Iterator[Json]:
    """Results of tools are messages of their own; what stands between them stays there."""
    for is_result, group in groupby(blocks, key=lambda block: block.get("type") == "tool_result"):
        if is_result:
            yield from map(_tool_result, group)
        else:
            yield {"role": "user", "content": [_text_part(block) for block in group]}


def _tool_result(block: Json) -> Json:
    match block:
        case {"tool_use_id": str(call)}:
            content = [_text_part(part) for part in _blocks(block.get("content") or "")]
            failed = {"is_error": True} if block.get("is_error") else {}
            return {"role": "tool", "tool_call_id": call, "content": content or "", **failed}
    raise _damaged("tool_result")


def _blocks(content: object) -> list[Json]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    if isinstance(content, list) and all(isinstance(block, dict) for block in content):
        return content
    raise ApiError(400, "content must be a text or a list of blocks, each an object with 'type'")


def _text_part(block: Json) -> Json:
    match block:
        case {"type": "text", "text": str(text)}:
            return {"type": "text", "text": text}
        case {"type": str(kind)} if kind not in _KNOWN:
            raise not_supported(f"content of type '{kind}'")
    raise _damaged(str(block.get("type")))


def _damaged(kind: str) -> ApiError:
    return ApiError(400, f"a block of type '{kind}' stands where none may be, or a field of it is missing or wrong")


def _tool(tool: Json) -> Json:
    if tool.get("type") not in (None, "custom"):
        raise not_supported(f"a tool of type '{tool['type']}', which Anthropic's servers run,")
    if not isinstance(tool.get("name"), str) or not isinstance(tool.get("input_schema"), dict):
        raise ApiError(400, "each of 'tools' must have a 'name' and an 'input_schema'")
    function = {"name": tool["name"], "parameters": tool["input_schema"]}
    return {"type": "function", "function": function | _given(tool, "description", "strict")}


def _given(content: Json, *names: str) -> Json:
    return {name: content[name] for name in names if content.get(name) is not None}


def _tool_choice(body: CountTokensBody) -> Json:
    choice = body.tool_choice
    if choice is None:
        return {}
    named = {"type": "function", "function": {"name": choice.name}}
    modes = {"auto": "auto", "any": "required", "tool": named, "none": "none"}
    return {"tool_choice": modes[choice.type], "parallel_tool_calls": not choice.disable_parallel_tool_use}


def _template_variables(body: CountTokensBody) -> Json:
    if body.thinking is None:
        return body.chat_template_kwargs
    return {"enable_thinking": body.thinking.type != "disabled"} | body.chat_template_kwargs


def _response_format(form: Json | None) -> Json | None:
    match form:
        case None:
            return None
        case {"type": "json_schema", "schema": schema}:
            return {"type": "json_schema", "json_schema": {"schema": schema}}
    raise ApiError(400, "'output_config.format' must have the type 'json_schema' and a 'schema'")
