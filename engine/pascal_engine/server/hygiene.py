"""Prefix hygiene: drops header lines that change with every request from the start of a system prompt.

Some clients, coding agents above all, put such a line there. The model has no use for it, and since it comes first, no
two requests of one chat begin alike any more, so that every prefix cache is of no use.
"""

import re
from collections.abc import Iterator
from typing import Literal, get_args

from pascal_engine.server.chat.messages import Message, TextPart
from pascal_engine.server.chat.schema import ChatBody

PrefixHygiene = Literal["anthropic", "all", "off"]
"""Where header lines are dropped: on the Anthropic routes, on every route that takes messages, or nowhere."""

PREFIX_HYGIENE: tuple[PrefixHygiene, ...] = get_args(PrefixHygiene)

_END = r"[ \t]*(?:\r?\n|\Z)"

# HTTP's way to write a header, and values that no sentence has: prose never looks like this.
_VOLATILE = (
    # `x-anthropic-billing-header: cc_version=2.1.101.e51; cch=a5145;`, also where the prompt goes on in the same line.
    rf"x-anthropic-billing-header:(?:[ \t]*[\w.-]+=[^\s;]*;)*[ \t]*[\w.-]+=[^\s;]*{_END}",
    rf"x-anthropic-billing-header:(?:[ \t]*[\w.-]+=[^\s;]*;)+(?:{_END})?",
    # `x-session-id: 0b5e2c2e-...`: one word of at least eight characters, a digit among them.
    r"x-(?:claude-code-|client-)?(?:session|conversation|thread|request|trace|correlation)-id:"
    rf"[ \t]*(?=\S*\d)[\w.:+/=-]{{8,}}{_END}",
    rf"x-nonce:[ \t]*(?=\S*\d)[\w.:+/=-]{{8,}}{_END}",
    rf"traceparent:[ \t]*[0-9a-f]{{2}}-[0-9a-f]{{32}}-[0-9a-f]{{16}}-[0-9a-f]{{2}}{_END}",
    # `x-timestamp: 2026-01-31T12:00:00Z`, or seconds (or parts of them) since 1970.
    rf"x-(?:request-)?timestamp:[ \t]*(?:\d{{4}}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:?\d\d)?|\d{{10,19}}(?:\.\d+)?){_END}",
)
_HEADERS = re.compile(rf"(?:{'|'.join(_VOLATILE)})+", re.IGNORECASE)


def without_volatile_headers(text: str) -> str:
    """`text` without the known volatile header lines that it begins with; everything behind them is kept as it is."""
    found = _HEADERS.match(text)
    return text[found.end() :] if found else text


def cleaned(body: ChatBody) -> ChatBody:
    """`body` without such lines at the start of its system prompts, or of the parts they are made of."""
    return body.model_copy(update={"messages": list(_cleaned(body.messages))})


def _cleaned(messages: list[Message]) -> Iterator[Message]:
    """The messages; a system prompt of nothing but such lines is left out, unless it is all that there is."""
    for message in messages:
        content = message.content
        if message.role not in ("system", "developer") or content is None:
            yield message
            continue
        rest = without_volatile_headers(content) if isinstance(content, str) else list(_cleaned_parts(content))
        if rest or not content or len(messages) == 1:
            yield message.model_copy(update={"content": rest})


def _cleaned_parts(parts: list[TextPart]) -> Iterator[TextPart]:
    for part in parts:
        text = without_volatile_headers(part.text)
        if text:
            yield part.model_copy(update={"text": text})
