"""Which pages in browsers may call the server: CORS, as llama-server does it."""

from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
_PREFLIGHT = {
    "access-control-allow-credentials": "true",
    "access-control-allow-methods": "GET, POST, OPTIONS",
    "access-control-allow-headers": "*",
}


class AllowOrigins:
    """`origins` is "*" for any page, "localhost" for those of this machine, or the one origin that is let in. Browsers
    ask first, with OPTIONS and without a key; that is answered here."""

    def __init__(self, app: ASGIApp, origins: str) -> None:
        self._app, self._origins = app, origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        allowed = self._allowed(Headers(scope=scope).get("origin", ""))

        async def send_with_origin(message: Message) -> None:
            if allowed and message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["access-control-allow-origin"] = allowed
                headers.add_vary_header("origin")
            await send(message)

        if scope["method"] == "OPTIONS":
            await Response(headers=_PREFLIGHT, media_type="text/html")(scope, receive, send_with_origin)
        else:
            await self._app(scope, receive, send_with_origin)

    def _allowed(self, origin: str) -> str:
        """The origin that the answer names, none for a page that is not let in."""
        if self._origins == "*":
            return origin
        if self._origins == "localhost":
            return origin if _host(origin) in _LOCAL else ""
        return self._origins


def _host(origin: str) -> str | None:
    try:
        return urlsplit(origin).hostname
    except ValueError:
        return None
