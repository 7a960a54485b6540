"""Errors in Anthropic's shape."""

from dataclasses import replace

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from pascal_engine.server.errors import ApiError, translate
from pascal_engine.server.respond import frame
from pascal_engine.server.routes import Route

ANTHROPIC = "/v1/messages"
"""What the paths of these routes begin with."""

OVERLOADED = 529

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    OVERLOADED: "overloaded_error",
}


def status_of(error: ApiError) -> int:
    """Anthropic's status for an error: 529 stands for a queue that is full."""
    return OVERLOADED if error.status == 503 else error.status


def body_of(error: ApiError) -> dict[str, object]:
    """The body of an answer."""
    kind = _TYPES.get(status_of(error), "api_error")
    return {"type": "error", "error": {"type": kind, "message": str(error)}}


def frame_of(error: ApiError) -> str:
    """The event that ends a stream."""
    return frame(body_of(error), "error")


def in_anthropic_shape(route: Route) -> Route:
    """`route`, answering in this shape where it raises."""

    async def endpoint(request: Request) -> Response:
        try:
            return await route.endpoint(request)
        except Exception as error:
            answer = translate(error)
            return JSONResponse(body_of(answer), status_of(answer))

    return replace(route, endpoint=endpoint)
