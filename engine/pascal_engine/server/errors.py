"""Every error leaves in the OpenAI shape: {"error": {"message", "type", "code"}}."""

import logging
from collections.abc import Awaitable, Callable, Mapping

from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from pascal_engine.errors import NoSuchSlotError, PromptTooLongError, QueueFullError
from pascal_engine.sampling.constraint import ConstraintError
from pascal_engine.sampling.params import SamplingError
from pascal_engine.tokenizer import TemplateError

_log = logging.getLogger(__name__)

Handler = Callable[[Request, Exception], Awaitable[Response]]

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    405: "invalid_request_error",
    500: "server_error",
    501: "not_supported_error",
    503: "unavailable_error",
}


class ApiError(Exception):
    """An answer other than success; `extra` joins the error object."""

    def __init__(self, status: int, message: str, kind: str | None = None, **extra: int) -> None:
        super().__init__(message)
        self.status = status
        self.body = error_body(status, message, kind, **extra)


def error_body(status: int, message: str, kind: str | None = None, **extra: int) -> dict[str, object]:
    """The error object of llama-server and OpenAI."""
    kind = kind or _TYPES.get(status, "invalid_request_error")
    return {"error": {"code": status, "message": message, "type": kind, **extra}}


def not_supported(what: str) -> ApiError:
    # Not 501, which the official OpenAI clients would try again.
    return ApiError(400, f"{what} is not supported by this engine; leave it out of the request", "not_supported_error")


def from_validation(error: ValidationError) -> ApiError:
    """The first of pydantic's complaints, as one sentence."""
    first = error.errors(include_url=False)[0]
    cause = (first.get("ctx") or {}).get("error")
    if isinstance(cause, ValueError):
        return ApiError(400, str(cause))
    unknown = first["type"] == "extra_forbidden"
    *outer, last = first["loc"] or ("",)
    parts = [part for part in outer if isinstance(part, int) or part.isidentifier()]
    parts += [last] if unknown or isinstance(last, int) or last.isidentifier() else []
    where = ".".join(map(str, parts))
    if unknown:
        return ApiError(400, f"the field '{where}' is not known to this engine")
    return ApiError(400, f"the field '{where}' is wrong: {first['msg']}")


def translate(error: Exception) -> ApiError:
    """The answer to an exception raised by an endpoint."""
    match error:
        case ApiError():
            return error
        case ValidationError():
            return from_validation(error)
        case PromptTooLongError():
            sizes = {"n_prompt_tokens": error.n_prompt, "n_ctx": error.n_ctx}
            return ApiError(400, str(error), "exceed_context_size_error", **sizes)
        case QueueFullError():
            return ApiError(503, str(error))
        case TemplateError() | ConstraintError() | SamplingError() | NoSuchSlotError():
            return ApiError(400, str(error))
        case HTTPException():
            return ApiError(error.status_code, _http_message(error))
    _log.error("a request failed", exc_info=error)
    return ApiError(500, "the engine failed on this request; see its log")


async def handle(request: Request, error: Exception) -> Response:
    """Starlette's exception handler for all errors."""
    answer = translate(error)
    headers = error.headers if isinstance(error, HTTPException) else None
    return JSONResponse(answer.body, answer.status, headers=headers)


def _http_message(error: HTTPException) -> str:
    if error.status_code == 404:
        return "there is no such route; see the engine's documentation for those that exist"
    if error.status_code == 405:
        return "this route does not take this method"
    return error.detail


_HANDLED = (
    ApiError,
    ValidationError,
    PromptTooLongError,
    QueueFullError,
    TemplateError,
    ConstraintError,
    SamplingError,
    NoSuchSlotError,
    HTTPException,
    Exception,
)

HANDLERS: Mapping[type[Exception], Handler] = dict.fromkeys(_HANDLED, handle)
