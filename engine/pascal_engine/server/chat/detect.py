"""Which dialect a chat template belongs to: the one whose reader understands the call that the template writes."""

import json
from functools import lru_cache

from pascal_engine.server.chat.dialect import CLOSE_THOUGHT, Dialect, ToolSyntax
from pascal_engine.server.chat.events import ToolCallArguments, ToolCallStart
from pascal_engine.server.chat.parser import OutputParser
from pascal_engine.server.chat.schema import Function
from pascal_engine.tokenizer import ChatTemplate, TemplateError

_NAME, _ARGUMENTS = "probe_call", {"probe": "5d0f"}
_SYNTAXES: tuple[ToolSyntax, ...] = ("xml", "hermes")
_CALL = {"id": "probe0000", "type": "function", "function": {"name": _NAME, "arguments": _ARGUMENTS}}
_MESSAGES = [
    {"role": "user", "content": "probe"},
    {"role": "assistant", "content": "", "tool_calls": [_CALL]},
    {"role": "tool", "tool_call_id": "probe0000", "name": _NAME, "content": "probe"},
]


@lru_cache(maxsize=8)
def dialect_of(template: ChatTemplate) -> Dialect:
    """The dialect that a template shows."""
    try:
        text = template.render(_MESSAGES)
    except TemplateError:
        text = ""
    tools = next((syntax for syntax in _SYNTAXES if _understands(syntax, text)), None)
    return Dialect(tools, thinks=CLOSE_THOUGHT in template.source)


def _understands(syntax: ToolSyntax, text: str) -> bool:
    parser = OutputParser(Dialect(syntax, thinks=False), "no", [Function(name=_NAME)])
    parts = [*parser.add(text), *parser.finish()]
    named = any(isinstance(part, ToolCallStart) and part.name == _NAME for part in parts)
    arguments = "".join(part.text for part in parts if isinstance(part, ToolCallArguments))
    return named and arguments == json.dumps(_ARGUMENTS)
