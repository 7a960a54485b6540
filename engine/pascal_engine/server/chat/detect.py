"""Which dialect a chat template belongs to: the one whose reader understands the call that the template writes."""

import json
from collections.abc import Mapping
from functools import lru_cache

from pascal_engine.server.chat.dialect import CLOSE_THOUGHT, OPEN_CALL, Dialect, ToolSyntax
from pascal_engine.server.chat.events import ContentText, ToolCallArguments, ToolCallStart
from pascal_engine.server.chat.parser import OutputParser
from pascal_engine.server.chat.schema import Function
from pascal_engine.tokenizer import ChatTemplate, TemplateError

_QUESTION, _RESULT = "probe-question", "probe-result"
_NAME, _ARGUMENTS = "probe_call", {"probe": "5d0f"}
_SYNTAXES: tuple[ToolSyntax, ...] = ("xml", "hermes")
_PARAMETERS = {"type": "object", "properties": {"probe": {"type": "string"}}}
_TOOL = {"type": "function", "function": {"name": _NAME, "description": "probe", "parameters": _PARAMETERS}}
_CALL = {"id": "probe0000", "type": "function", "function": {"name": _NAME, "arguments": _ARGUMENTS}}
_MESSAGES: list[Mapping[str, object]] = [
    {"role": "user", "content": _QUESTION},
    {"role": "assistant", "content": "", "tool_calls": [_CALL]},
    {"role": "tool", "tool_call_id": "probe0000", "name": _NAME, "content": _RESULT},
]


@lru_cache(maxsize=8)
def dialect_of(template: ChatTemplate) -> Dialect:
    """The dialect that a template shows."""
    try:
        text = template.render(_MESSAGES, tools=[_TOOL])
    except TemplateError:
        text = ""
    # Before the question stand instructions, with examples of calls.
    text = text.rpartition(_QUESTION)[2].partition(_RESULT)[0]
    tools = next((syntax for syntax in _SYNTAXES if _understands(syntax, text)), None)
    return Dialect(tools, thinks=CLOSE_THOUGHT in template.source)


def _understands(syntax: ToolSyntax, text: str) -> bool:
    parser = OutputParser(Dialect(syntax, thinks=False), "no", [Function(name=_NAME)])
    parts = [*parser.add(text), *parser.finish()]
    named = any(isinstance(part, ToolCallStart) and part.name == _NAME for part in parts)
    arguments = "".join(part.text for part in parts if isinstance(part, ToolCallArguments))
    content = "".join(part.text for part in parts if isinstance(part, ContentText))
    return OPEN_CALL in text and named and arguments == json.dumps(_ARGUMENTS) and "tool_call>" not in content
