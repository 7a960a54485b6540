"""Answers made of a source of events, in one piece or as server-sent events."""

import json
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Protocol, TypeVar

from starlette.responses import Response
from starlette.types import Send

from pascal_engine.server.errors import ApiError, translate
from pascal_engine.server.generation import Cancellable, GenerationResponse

E_co = TypeVar("E_co", covariant=True)
E = TypeVar("E")

Content = dict[str, object] | list[dict[str, object]] | str
"""What becomes JSON, or JSON that is written already."""


class Source(Cancellable, Protocol[E_co]):
    """Something whose events make an answer."""

    def events(self) -> AsyncIterator[E_co]:
        """What happens, until the end."""


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode  # made once: there is one for each token


def frame(content: object, event: str | None = None) -> str:
    """A server-sent event."""
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {_encode(content)}\n\n"


def whole(
    source: Source[E],
    build: Callable[[list[E]], Content],
    of_error: Callable[[ApiError], Content] = lambda error: error.body,
    status_of: Callable[[ApiError], int] = lambda error: error.status,
) -> Response:
    """The answer that `build` makes of all events, or the one that the last two make of an error."""

    async def produce(send: Send) -> None:
        try:
            content, status = build([event async for event in source.events()]), 200
        except Exception as error:
            failure = translate(error)
            content, status = of_error(failure), status_of(failure)
        await _start(send, status, b"application/json")
        await _body(send, content if isinstance(content, str) else _encode(content), more=False)

    return GenerationResponse(source, produce)


def stream(
    source: Source[E],
    frames: Callable[[E], Iterable[str]],
    of_error: Callable[[ApiError], str] = lambda error: frame(error.body),
    begin: Iterable[str] = (),
    end: str = "",
) -> Response:
    """`begin` at once, the frames of each event in turn, and `end`."""

    async def produce(send: Send) -> None:
        await _start(send, 200, b"text/event-stream")
        for text in begin:
            await _body(send, text)
        try:
            async for event in source.events():
                for text in frames(event):
                    await _body(send, text)
        except Exception as error:
            await _body(send, of_error(translate(error)))
        await _body(send, end, more=False)

    return GenerationResponse(source, produce)


async def _start(send: Send, status: int, content_type: bytes) -> None:
    headers = [(b"content-type", content_type), (b"cache-control", b"no-cache")]
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def _body(send: Send, text: str, *, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": text.encode("utf-8", "replace"), "more_body": more})
