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

    def thinking_after(self, beginning: str) -> Thinking:
        """Where an answer stands whose text begins with `beginning`: the end of a prompt, or a message to go on."""
        if not self.thinks:
            return "no"
        beginning = beginning.rstrip()
        if beginning.endswith(OPEN_THOUGHT):
            return "open"
        return "no" if beginning.endswith(CLOSE_THOUGHT) else "may"
