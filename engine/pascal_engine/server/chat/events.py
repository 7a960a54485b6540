"""What happens while a chat is answered, free of any wire format."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from pascal_engine.schedule.sequence import Delta, Finished, Progress

ChatEndReason = Literal["stop", "length", "tool_calls"]


@dataclass(frozen=True)
class PromptProgress:
    """How far the prompt is; sent only where the body asks for it."""

    progress: Progress
    deltas: tuple[Delta, ...] = ()


@dataclass(frozen=True)
class ReasoningText:
    """More of what the model thinks before it answers. Of all events, `deltas` are those that came in since the event
    before: together they hold every generated token once."""

    text: str
    deltas: tuple[Delta, ...] = ()


@dataclass(frozen=True)
class ContentText:
    """More of the answer itself."""

    text: str
    deltas: tuple[Delta, ...] = ()


@dataclass(frozen=True)
class ToolCallStart:
    """The model calls the function `name`; calls are counted from 0 by `index`."""

    index: int
    id: str
    name: str
    deltas: tuple[Delta, ...] = ()


@dataclass(frozen=True)
class ToolCallArguments:
    """More of the arguments of a call: all of them joined are a JSON object, unless the answer was cut short."""

    index: int
    text: str
    deltas: tuple[Delta, ...] = ()


@dataclass(frozen=True)
class ChatEnd:
    """The end of an answer, always the last event."""

    reason: ChatEndReason
    finished: Finished
    deltas: tuple[Delta, ...] = ()


ChatPart: TypeAlias = ReasoningText | ContentText | ToolCallStart | ToolCallArguments
ChatEvent: TypeAlias = PromptProgress | ChatPart | ChatEnd
