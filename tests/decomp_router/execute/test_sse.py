"""Events are framed on bytes."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decomp_router.execute.sse import comment, events, frame


async def collected(*chunks: bytes) -> list[bytes]:
    async def source() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    return [data async for data in events(source())]


@given(st.lists(st.text(min_size=1)), st.integers(1, 7))
async def test_any_text_survives_any_chunking(texts: list[str], size: int) -> None:
    lines = [text.replace("\n", " ").replace("\r", " ").encode() for text in texts]
    stream = b"".join(map(frame, lines))
    chunks = [stream[place : place + size] for place in range(0, len(stream), size)]
    assert await collected(*chunks) == lines


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        ("data: {\u2028\u0085}\n\n".encode(), ["{\u2028\u0085}".encode()]),
        (b"data: a\r\n\r\ndata:b\n\n", [b"a", b"b"]),
        (b"event: x\nid: 1\ndata: a\ndata: b\n\n", [b"a\nb"]),
        (comment("keep-alive") + b"\n\ndata: a\n\n", [b"a"]),
        (b"data: cut off", []),
    ],
)
async def test_framing(stream: bytes, expected: list[bytes]) -> None:
    assert await collected(stream) == expected
