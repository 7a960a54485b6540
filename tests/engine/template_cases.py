"""Chats that templates are tried with. No imports: the script that asks transformers reads it as well."""

from typing import Any

_USER = {"role": "user", "content": "Wie wird das Wetter in Köln?"}
_SYSTEM = {"role": "system", "content": 'Answer <briefly> & "well", it\'s {{ fine }}.'}
_ANSWER = {"role": "assistant", "content": " Sunny.\n"}
_AGAIN = {"role": "user", "content": "And tomorrow?"}
_TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Tells the weather: °C & <wind>",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "Name of the city"},
                "days": {"type": "integer", "enum": [1, 2, 3]},
                "units": {"type": ["string", "null"], "default": "metric"},
            },
            "required": ["city"],
        },
    },
}
_OTHER_TOOL = {
    "type": "function",
    "function": {"name": "now", "description": "The time", "parameters": {"type": "object", "properties": {}}},
}


def _call(call_id: str, name: str, **arguments: object) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _result(call_id: str, name: str, content: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "name": name, "content": content}


_CALLING = {
    "role": "assistant",
    "content": "",
    "tool_calls": [_call("abcdef012", "get_weather", city="Köln", days=2, detail={"wind": True, "of": [1, None]})],
}
_CALLING_TWICE = {
    "role": "assistant",
    "content": "I look it up.",
    "tool_calls": [_call("abcdef012", "get_weather", city="Köln"), _call("abcdef013", "now")],
}
_RESULT = _result("abcdef012", "get_weather", '{"sky": "grün", "t": 21}')
_THOUGHT = {"role": "assistant", "content": "Sunny.", "reasoning_content": "It is June,\nso sun."}
_PARTS = {"role": "user", "content": [{"type": "text", "text": "One. "}, {"type": "text", "text": "Two."}]}
_DOCUMENTS = [{"title": "Köln", "text": "A city."}, {"title": "Bonn", "text": "Another."}]

CASES: dict[str, dict[str, Any]] = {
    "user": {"messages": [_USER]},
    "system": {"messages": [_SYSTEM, _USER]},
    "turns": {"messages": [_SYSTEM, _USER, _ANSWER, _AGAIN]},
    "no generation prompt": {"messages": [_USER, _ANSWER], "add_generation_prompt": False},
    "continued": {
        "messages": [_USER, {"role": "assistant", "content": "Well, "}],
        "add_generation_prompt": False,
        "continue_final_message": True,
    },
    "tools": {"messages": [_SYSTEM, _USER], "tools": [_TOOL, _OTHER_TOOL]},
    "tools without system": {"messages": [_USER], "tools": [_TOOL]},
    "call": {"messages": [_USER, _CALLING, _RESULT], "tools": [_TOOL]},
    "two calls": {
        "messages": [_USER, _CALLING_TWICE, _RESULT, _result("abcdef013", "now", "noon"), _ANSWER, _AGAIN],
        "tools": [_TOOL, _OTHER_TOOL],
    },
    "thinking off": {"messages": [_USER], "enable_thinking": False},
    "thinking on": {"messages": [_USER], "enable_thinking": True},
    "thought": {"messages": [_USER, _THOUGHT, _AGAIN]},
    "thought before a result": {"messages": [_USER, {**_CALLING, "reasoning_content": "Hm."}, _RESULT]},
    "thought as text": {
        "messages": [_USER, {"role": "assistant", "content": "<think>\nHm.\n</think>\n\nSun."}, _AGAIN]
    },
    "parts": {"messages": [_PARTS]},
    "system in the middle": {"messages": [_USER, _ANSWER, _SYSTEM, _AGAIN]},
    "documents": {"messages": [_USER], "documents": _DOCUMENTS},
    "two users": {"messages": [_USER, _AGAIN]},
    "date": {"messages": [_USER], "date_string": "02 Jan 2026"},
}
