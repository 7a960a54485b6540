"""API keys, where the server was started with some."""

import hmac
from collections.abc import Iterable

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from pascal_engine.server.anthropic.errors import ANTHROPIC
from pascal_engine.server.anthropic.errors import body_of as anthropic_body
from pascal_engine.server.errors import ApiError

PUBLIC = frozenset({"/health", "/v1/health"})
"""What needs no key, as with llama-server."""


class RequireKey:
    """Lets through what brings one of `keys`, as `Authorization: Bearer KEY` or `X-Api-Key: KEY`; all else is a 401."""

    def __init__(self, app: ASGIApp, keys: Iterable[str]) -> None:
        self._app = app
        self._keys = [key.encode() for key in keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in PUBLIC or self._accepts(Headers(scope=scope)):
            await self._app(scope, receive, send)
        else:
            error = ApiError(401, "Invalid API Key")
            content = anthropic_body(error) if scope["path"].startswith(ANTHROPIC) else error.body
            await JSONResponse(content, 401)(scope, receive, send)

    def _accepts(self, headers: Headers) -> bool:
        given = headers.get("authorization") or headers.get("x-api-key") or ""
        key = given.removeprefix("Bearer ").encode("latin-1", "replace")
        # All keys are compared, each in constant time, so that the time tells nothing.
        return sum(hmac.compare_digest(key, known) for known in self._keys) > 0
