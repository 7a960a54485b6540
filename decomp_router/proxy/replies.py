"""What the router itself says: JSON, and errors in the OpenAI shape."""

from __future__ import annotations

import json
from typing import Any, Literal

from starlette.types import Send

from decomp_router.execute.upstream import Headers

ErrorType = Literal["invalid_request_error", "upstream_error"]


def error(message: str, kind: ErrorType) -> dict[str, Any]:
    """An error as OpenAI's clients expect it."""
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


async def reply(send: Send, status: int, body: dict[str, Any], headers: Headers = ()) -> None:
    """Sends one JSON response."""
    data = json.dumps(body).encode()
    own = ((b"content-type", b"application/json"), (b"content-length", str(len(data)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": [*own, *headers]})
    await send({"type": "http.response.body", "body": data})
