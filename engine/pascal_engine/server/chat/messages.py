"""The messages of a chat, checked, and as a template takes them."""

import json
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, model_validator

from pascal_engine.server.errors import not_supported


class FunctionCall(BaseModel):
    """A function's name, and its arguments as JSON text or as an object."""

    model_config = ConfigDict(extra="allow", strict=True)

    name: str
    arguments: str | dict[str, Any] = "{}"


class ToolCall(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)

    id: str | None = None
    type: Literal["function"] = "function"
    function: FunctionCall


class TextPart(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)

    type: Literal["text"]
    text: str


class Message(BaseModel):
    """One message of any role. Fields that are not known here go to the template, which may know them."""

    model_config = ConfigDict(extra="allow", strict=True)

    role: str
    content: str | list[TextPart] | None = None
    name: str | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None
    reasoning_content: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _check_shape(cls, data: object) -> object:
        if not isinstance(data, Mapping):
            raise ValueError("a message must be an object with 'role' and 'content'")
        content = data.get("content")
        if not isinstance(content, str | list | None):
            raise ValueError("the 'content' of a message must be text or a list of parts")
        for part in content if isinstance(content, list) else ():
            _check_part(part)
        if data.get("function_call") is not None:
            raise not_supported("'function_call' in a message, which 'tool_calls' replaced,")
        return data

    @model_validator(mode="after")
    def _check_content(self) -> "Message":
        missing = "content" not in self.model_fields_set
        if missing and not (self.role == "assistant" and (self.tool_calls or self.reasoning_content)):
            raise ValueError("a message must have 'content'; only the assistant's may have 'tool_calls' instead")
        return self

    @property
    def text(self) -> str:
        """The content, parts joined by line feeds as llama-server does."""
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content)
        return self.content or ""

    def as_given(self) -> dict[str, Any]:
        """The fields that the client sent, with their values; templates ask whether there are `tool_calls`, so that
        none at all must not be there."""
        fields = self.model_dump(exclude_unset=True)
        return {
            name: value for name, value in fields.items() if value is not None and (name, value) != ("tool_calls", [])
        }


def parsed_arguments(arguments: object) -> object:
    """Arguments as an object where they are the text of one, else as they are."""
    if not isinstance(arguments, str):
        return arguments
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    return value if isinstance(value, dict) else arguments


def _check_part(part: object) -> None:
    if not isinstance(part, Mapping) or not isinstance(part.get("type"), str):
        raise ValueError('a part of a message\'s content must be an object with \'type\', such as {"type": "text"}')
    if part["type"] != "text":
        raise not_supported(f"message content of type '{part['type']}' (this engine reads text only)")
    if not isinstance(part.get("text"), str):
        raise ValueError("a text part must have a string in 'text'")
