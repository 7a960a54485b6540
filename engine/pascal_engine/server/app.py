"""The routes."""

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pascal_engine.engine import Engine
from pascal_engine.server import completion, embeddings, openai, status, text_completion
from pascal_engine.server.anthropic.errors import in_this_shape
from pascal_engine.server.anthropic.routes import count_message, create_message
from pascal_engine.server.anthropic.schema import CountTokensBody, MessagesBody
from pascal_engine.server.embeddings import EmbeddingsBody
from pascal_engine.server.errors import HANDLERS, ApiError
from pascal_engine.server.hygiene import PrefixHygiene
from pascal_engine.server.options import ServerOptions
from pascal_engine.server.prompts import check_tokens, render_chat
from pascal_engine.server.responses.routes import count_input, create_response
from pascal_engine.server.responses.schema import InputTokensBody, ResponsesBody
from pascal_engine.server.schemas import (
    Body,
    ChatBody,
    CompletionBody,
    DetokenizeBody,
    TemplateBody,
    TokenizeBody,
)
from pascal_engine.server.text_completion import TextCompletionBody

B = TypeVar("B", bound=Body)
MAX_BODY_BYTES = 4 << 20
_DEFAULTS = ServerOptions()


def create_app(engine: Engine, options: ServerOptions = _DEFAULTS) -> Starlette:
    """The ASGI application for `engine`; the engine's thread runs during the application's lifespan."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        engine.worker.start()
        yield
        engine.worker.stop()

    routes = _Routes(engine, options)
    paths = [
        (("/health", "/v1/health"), routes.health, "GET"),
        (("/props",), routes.props, "GET"),
        (("/slots",), routes.slots, "GET"),
        (("/models", "/v1/models"), routes.models, "GET"),
        (("/tokenize",), routes.tokenize, "POST"),
        (("/detokenize",), routes.detokenize, "POST"),
        (("/apply-template",), routes.apply_template, "POST"),
        (("/completion", "/completions"), routes.completion, "POST"),
        (("/v1/completions",), routes.openai_completion, "POST"),
        (("/v1/messages",), in_this_shape(routes.create_message), "POST"),
        (("/v1/messages/count_tokens",), in_this_shape(routes.count_message), "POST"),
        (("/responses", "/v1/responses"), routes.create_response, "POST"),
        (("/responses/input_tokens", "/v1/responses/input_tokens"), routes.count_input, "POST"),
        (("/v1/embeddings",), routes.openai_embeddings, "POST"),
        (("/embedding", "/embeddings"), routes.embeddings, "POST"),
        (("/chat/completions", "/v1/chat/completions"), routes.chat, "POST"),
    ]
    table = [Route(path, endpoint, methods=[method]) for names, endpoint, method in paths for path in names]
    return Starlette(routes=table, exception_handlers=dict(HANDLERS), lifespan=lifespan)


class _Routes:
    """One short method for each route."""

    def __init__(self, engine: Engine, options: ServerOptions) -> None:
        self._engine, self._options = engine, options
        self._created = int(time.time())

    async def health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def props(self, request: Request) -> Response:
        return JSONResponse(status.props(self._engine))

    async def slots(self, request: Request) -> Response:
        return JSONResponse(status.slots(self._engine))

    async def models(self, request: Request) -> Response:
        return JSONResponse(status.models(self._engine, self._created))

    async def tokenize(self, request: Request) -> Response:
        body = await _read(request, TokenizeBody)
        tokens = self._engine.tokenizer.encode(
            body.content, add_special=body.add_special, parse_special=body.parse_special
        )
        if not body.with_pieces:
            return JSONResponse({"tokens": tokens})
        return JSONResponse({"tokens": [{"id": token, "piece": self._piece(token)} for token in tokens]})

    async def detokenize(self, request: Request) -> Response:
        body = await _read(request, DetokenizeBody)
        check_tokens(self._engine, body.tokens)
        return JSONResponse({"content": self._engine.tokenizer.decode(body.tokens)})

    async def apply_template(self, request: Request) -> Response:
        body = await _read(request, TemplateBody)
        return JSONResponse({"prompt": render_chat(self._engine, body.messages, body.chat_template_kwargs)})

    async def completion(self, request: Request) -> Response:
        return completion.complete(self._engine, await _read(request, CompletionBody))

    async def openai_completion(self, request: Request) -> Response:
        return text_completion.complete(self._engine, await _read(request, TextCompletionBody))

    async def create_message(self, request: Request) -> Response:
        return await create_message(
            self._engine, await _read(request, MessagesBody), hygiene=self._hygiene("anthropic")
        )

    async def count_message(self, request: Request) -> Response:
        body = await _read(request, CountTokensBody)
        return await count_message(self._engine, body, hygiene=self._hygiene("anthropic"))

    async def create_response(self, request: Request) -> Response:
        return await create_response(self._engine, await _read(request, ResponsesBody), hygiene=self._hygiene("all"))

    async def count_input(self, request: Request) -> Response:
        return await count_input(self._engine, await _read(request, InputTokensBody), hygiene=self._hygiene("all"))

    async def openai_embeddings(self, request: Request) -> Response:
        body = await _read(request, EmbeddingsBody)
        return embeddings.embed(self._engine, self._options.pooling, body, openai=True)

    async def embeddings(self, request: Request) -> Response:
        body = await _read(request, EmbeddingsBody)
        return embeddings.embed(self._engine, self._options.pooling, body, openai=False)

    async def chat(self, request: Request) -> Response:
        return openai.chat(self._engine, await _read(request, ChatBody))

    def _hygiene(self, least: PrefixHygiene) -> bool:
        """Whether header lines are dropped where the option `least` would do."""
        return self._options.prefix_hygiene in ("all", least)

    def _piece(self, token: int) -> str | list[int]:
        """A token's text, or its bytes where they are no text by themselves, as llama-server does."""
        piece = self._engine.tokenizer.token_bytes(token)
        try:
            return piece.decode()
        except UnicodeDecodeError:
            return list(piece)


async def _read(request: Request, kind: type[B]) -> B:
    """The body as `kind`; what does not fit is a 400. Reading stops where the body grows past any use."""
    raw = b""
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > MAX_BODY_BYTES:
            raise ApiError(413, f"the body is larger than {MAX_BODY_BYTES >> 20} MiB, more than any context holds")
    try:
        content = json.loads(raw)
        json.dumps(content, ensure_ascii=False).encode()  # half a surrogate pair is valid JSON, but no text
    except (ValueError, RecursionError) as error:
        raise ApiError(400, f"the body is not valid JSON: {error}") from error
    return kind.model_validate(content)
