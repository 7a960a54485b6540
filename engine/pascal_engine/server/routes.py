"""How a route is described, once: for Starlette, for the OpenAPI document and for the table of fields."""

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute

from pascal_engine.engine import Engine
from pascal_engine.server.errors import ApiError
from pascal_engine.server.schemas import Body

B = TypeVar("B", bound=Body)

MAX_BODY_BYTES = 4 << 20
_LONG_BYTES = 1 << 16
"""Bodies from here on are read beside the event loop, which the many fields of one would hold up."""

Endpoint = Callable[[Request], Awaitable[Response]]
Action = Callable[[Engine, Any], Response | Awaitable[Response]]
"""What answers a body that was read."""


@dataclass(frozen=True)
class Route:
    """All `paths` do the same; `body` is the schema of what they take, None where they take nothing."""

    method: Literal["GET", "POST"]
    paths: tuple[str, ...]
    body: type[Body] | None
    endpoint: Endpoint
    summary: str

    def for_starlette(self) -> list[StarletteRoute]:
        return [StarletteRoute(path, self.endpoint, methods=[self.method]) for path in self.paths]


def get(endpoint: Endpoint, *paths: str) -> Route:
    """A route without a body; the first line of the endpoint's docstring is its summary."""
    return Route("GET", paths, None, endpoint, _summary(endpoint))


def post(engine: Engine, action: Action, body: type[Body], *paths: str) -> Route:
    """A route whose body is read as `body` and handed to `action`."""

    async def endpoint(request: Request) -> Response:
        answer = action(engine, await read_body(request, body))
        return await answer if inspect.isawaitable(answer) else answer

    return Route("POST", paths, body, endpoint, _summary(action))


async def read_body(request: Request, kind: type[B], empty: bytes = b"") -> B:
    """The body as `kind`, `empty` standing for none; what does not fit is a 400. Reading stops where the body grows
    past any use."""
    raw = b""
    try:
        async for chunk in request.stream():
            raw += chunk
            if len(raw) > MAX_BODY_BYTES:
                raise ApiError(413, f"the body is larger than {MAX_BODY_BYTES >> 20} MiB, more than any context holds")
    except ClientDisconnect as error:
        raise ApiError(400, "the connection was closed before the body was there") from error
    if len(raw) < _LONG_BYTES:
        return _parsed(raw or empty, kind)
    return await asyncio.to_thread(_parsed, raw, kind)


def _parsed(raw: bytes, kind: type[B]) -> B:
    try:
        content = json.loads(raw)
        json.dumps(content, ensure_ascii=False).encode()  # half a surrogate pair is valid JSON, but no text
    except (ValueError, RecursionError) as error:
        raise ApiError(400, f"the body is not valid JSON: {error}") from error
    return kind.model_validate(content)


def _summary(function: Callable[..., object]) -> str:
    return (inspect.getdoc(function) or "").partition("\n")[0]
