"""What a chat request says: the last user text and what went before it."""

from __future__ import annotations

from dataclasses import dataclass


class NotAConversation(ValueError):  # noqa: N818 - it says what the value is not
    """Why a value is no list of chat messages, in one sentence."""


@dataclass(frozen=True)
class Conversation:
    """The last user message's text and the (role, text) messages before it."""

    prompt: str
    context: tuple[tuple[str, str], ...] = ()
    unreadable: str = ""
    """Why the prompt must not be taken apart, where its text is not all of it."""

    @classmethod
    def of(cls, messages: object) -> Conversation:
        """Reads the `messages` of a request; raises NotAConversation."""
        if not isinstance(messages, list) or not messages:
            raise NotAConversation("'messages' must be a list that is not empty")
        turns = [_turn(index, message) for index, message in enumerate(messages)]
        asked = [index for index, (role, _) in enumerate(turns) if role == "user"]
        if not asked:
            return cls("", tuple(turns), "no message is the user's")
        last = messages[asked[-1]].get("content")
        beyond = isinstance(last, list) and not all(map(is_text, last))
        reason = "a part of the message is not text" if beyond else ""
        return cls(turns[asked[-1]][1], tuple(turns[: asked[-1]]), reason)


def text_of(content: object) -> str:
    """The text of a message's content; parts are joined by line breaks, as llama-server does."""
    if isinstance(content, list):
        return "\n".join(str(part["text"]) for part in content if is_text(part))
    return content if isinstance(content, str) else ""


def is_text(part: object) -> bool:
    """Whether a content part is text, and not an image, audio or a file."""
    return isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)


def _turn(index: int, message: object) -> tuple[str, str]:
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise NotAConversation(f"messages[{index}] must be an object with a 'role'")
    content = message.get("content")
    if not isinstance(content, str | list | None):
        raise NotAConversation(f"messages[{index}].content must be text or a list of parts")
    return message["role"], text_of(content)
