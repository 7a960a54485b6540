"""Server-sent events, framed on bytes: line separators inside JSON (U+2028, U+0085) end no line."""

from __future__ import annotations

from collections.abc import AsyncIterator

DONE = b"[DONE]"


async def events(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The data of each event, however the stream was cut into chunks; an event without its end is left out."""
    rest = b""
    data: list[bytes] = []
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            field, _, value = line.removesuffix(b"\r").partition(b":")
            if field == b"data":
                data.append(value.removeprefix(b" "))
            elif not field and not value and data:
                yield b"\n".join(data)
                data = []


def frame(data: bytes) -> bytes:
    """One event; `data` holds no line break."""
    assert b"\n" not in data, "a line break would end the event's line"
    return b"data: " + data + b"\n\n"


def comment(text: str) -> bytes:
    """A line that clients ignore; it keeps the connection alive."""
    return f": {text}\n\n".encode()
