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

    @classmethod
    def of(cls, messages: object) -> Conversation:
        """Reads the `messages` of a request; raises NotAConversation."""
        if not isinstance(messages, list) or not messages:
            raise NotAConversation("'messages' must be a list that is not empty")
        turns = [_turn(index, message) for index, message in enumerate(messages)]
        asked = [index for index, (role, _) in enumerate(turns) if role == "user"]
        if not asked:
            raise NotAConversation("'messages' holds no message of the role 'user'")
        return cls(turns[asked[-1]][1], tuple(turns[: asked[-1]]))


def text_of(content: object) -> str:
    """The text of a message's content; parts are joined by line breaks, as llama-server does."""
    if isinstance(content, list):
        return "\n".join(str(part["text"]) for part in content if is_text(part))
    return content if isinstance(content, str) else ""


def is_text(part: object) -> bool:
    """Whether a content part is text, and not an image, audio or a file."""
    return isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)


def is_unicode(text: str) -> bool:
    """False for text with lone surrogates, which JSON can smuggle in and no tokenizer takes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _turn(index: int, message: object) -> tuple[str, str]:
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise NotAConversation(f"messages[{index}] must be an object with a 'role'")
    content = message.get("content")
    if not isinstance(content, str | list | None):
        raise NotAConversation(f"messages[{index}].content must be text or a list of parts")
    text = text_of(content)
    if not is_unicode(text):
        raise NotAConversation(f"messages[{index}].content is not valid Unicode")
    return message["role"], text
