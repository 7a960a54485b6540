"""How a model writes its thoughts and its calls of functions, told by its chat template."""

from dataclasses import dataclass
from typing import Literal

OPEN_THOUGHT, CLOSE_THOUGHT = "<think>", "</think>"
OPEN_CALL, CLOSE_CALL = "<tool_call>", "</tool_call>"

ToolSyntax = Literal["hermes", "xml"]
Thinking = Literal["open", "may", "no"]
"""Whether the prompt ends inside a thought, the answer may begin with one, or there is none."""


@dataclass(frozen=True)
class Dialect:
    """`tools` is None where the template knows no way to call functions that can be read here.

    "hermes" is JSON between tags: `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`; "xml" is that of
    Qwen3-Coder: `<tool_call><function=NAME><parameter=KEY>value</parameter></function></tool_call>`.
    """

    tools: ToolSyntax | None
    thinks: bool

    def thinking_after(self, prompt: str) -> Thinking:
        """Where an answer begins that follows `prompt`."""
        if not self.thinks:
            return "no"
        prompt = prompt.rstrip()
        if prompt.endswith(OPEN_THOUGHT):
            return "open"
        return "no" if prompt.endswith(CLOSE_THOUGHT) else "may"

    def thinking_within(self, message: str) -> Thinking:
        """Where an answer begins that goes on with `message`."""
        is_inside = message.rfind(OPEN_THOUGHT) > message.rfind(CLOSE_THOUGHT)
        return "open" if self.thinks and is_inside else "no"
