"""The application: all routes in one table."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from pascal_engine.engine import Engine
from pascal_engine.server import chat, embeddings, text_completion
from pascal_engine.server.anthropic.errors import in_anthropic_shape
from pascal_engine.server.anthropic.routes import count_message, create_message
from pascal_engine.server.anthropic.schema import CountTokensBody, MessagesBody
from pascal_engine.server.auth import RequireKey
from pascal_engine.server.chat.schema import ChatBody, TemplateBody
from pascal_engine.server.cors import AllowOrigins
from pascal_engine.server.embeddings import EmbeddingsBody
from pascal_engine.server.errors import HANDLERS, ApiError
from pascal_engine.server.hygiene import cleaned
from pascal_engine.server.native import completion, status, tokens
from pascal_engine.server.native.metrics import CONTENT_TYPE, Metrics
from pascal_engine.server.native.schemas import DetokenizeBody, NativeCompletionBody, SlotBody, TokenizeBody
from pascal_engine.server.native.slots import SlotActions
from pascal_engine.server.openapi import document
from pascal_engine.server.options import ServerOptions
from pascal_engine.server.responses.routes import count_input, create_response
from pascal_engine.server.responses.schema import InputTokensBody, ResponsesBody
from pascal_engine.server.routes import Route, get, post, read_body
from pascal_engine.server.text_completion import TextCompletionBody

_DEFAULTS = ServerOptions()


def create_app(engine: Engine, options: ServerOptions = _DEFAULTS) -> Starlette:
    """The ASGI application for `engine`; the engine's thread runs during the application's lifespan."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        engine.worker.start()
        yield
        engine.worker.stop()

    table = [route for description in routes(engine, options) for route in description.for_starlette()]
    guards = [Middleware(AllowOrigins, origins=options.cors_origins)]
    guards += [Middleware(RequireKey, keys=options.api_keys)] if options.api_keys else []
    return Starlette(routes=table, middleware=guards, exception_handlers=dict(HANDLERS), lifespan=lifespan)


def routes(engine: Engine, options: ServerOptions) -> list[Route]:
    """Every route that there is."""
    own = _Own(engine, options)
    table = [
        get(own.health, "/health", "/v1/health"),
        get(own.props, "/props"),
        Route("POST", ("/props",), None, own.change_props, "Changes nothing: no property can be changed."),
        get(own.slots, "/slots"),
        Route("POST", ("/slots/{id_slot}",), SlotBody, own.slot_action, "Saves, restores or erases a slot."),
        get(own.metrics, "/metrics"),
        get(own.models, "/models", "/v1/models"),
        post(engine, tokens.tokenize, TokenizeBody, "/tokenize"),
        post(engine, tokens.detokenize, DetokenizeBody, "/detokenize"),
        post(engine, chat.apply_template, TemplateBody, "/apply-template"),
        post(engine, completion.complete, NativeCompletionBody, "/completion", "/completions"),
        post(engine, text_completion.complete, TextCompletionBody, "/v1/completions"),
        in_anthropic_shape(post(engine, own.create_message, MessagesBody, "/v1/messages")),
        in_anthropic_shape(post(engine, own.count_message, CountTokensBody, "/v1/messages/count_tokens")),
        post(engine, own.create_response, ResponsesBody, "/responses", "/v1/responses"),
        post(engine, own.count_input, InputTokensBody, "/responses/input_tokens", "/v1/responses/input_tokens"),
        post(engine, own.openai_embeddings, EmbeddingsBody, "/v1/embeddings"),
        post(engine, own.embeddings, EmbeddingsBody, "/embedding", "/embeddings"),
        post(engine, own.chat, ChatBody, "/chat/completions", "/v1/chat/completions"),
    ]
    described = document(table)

    async def openapi(request: Request) -> Response:
        """This document."""
        return JSONResponse(described)

    return [*table, get(openapi, "/openapi.json")]


class _Own:
    """Routes that need more than the engine and a body."""

    def __init__(self, engine: Engine, options: ServerOptions) -> None:
        self._engine, self._options = engine, options
        self._created = int(time.time())
        self._metrics = Metrics(engine.scheduler)
        self._slots = SlotActions(engine, options.slot_save_path)

    async def health(self, request: Request) -> Response:
        """Whether the server is ready."""
        return JSONResponse({"status": "ok"})

    async def props(self, request: Request) -> Response:
        """What the server and its model are like."""
        return JSONResponse(status.props(self._engine, self._options))

    async def change_props(self, request: Request) -> Response:
        if not self._options.props:
            raise ApiError(501, "properties cannot be changed; start the server with --props")
        return JSONResponse({"success": True})

    async def slots(self, request: Request) -> Response:
        """What each slot does; with ?fail_on_no_slot=1 a 503 where all are at work."""
        if not self._options.slots:
            raise ApiError(501, "this server was started with --no-slots; start it without")
        busy = all(slot.is_processing for slot in self._engine.scheduler.slots)
        if busy and request.query_params.get("fail_on_no_slot"):
            raise ApiError(503, "all slots are at work; try again later")
        return JSONResponse(status.slots(self._engine))

    async def slot_action(self, request: Request) -> Response:
        return await self._slots.act(request, await read_body(request, SlotBody, empty=b"{}"))

    async def metrics(self, request: Request) -> Response:
        """Counts and rates, for Prometheus."""
        if not self._options.metrics:
            raise ApiError(501, "metrics are off; start the server with --metrics")
        return PlainTextResponse(self._metrics.scrape(), headers={"content-type": CONTENT_TYPE})

    async def models(self, request: Request) -> Response:
        """The model, with its sizes."""
        return JSONResponse(status.models(self._engine, self._created))

    async def chat(self, engine: Engine, body: ChatBody) -> Response:
        """The next message of a chat, in OpenAI's form."""
        return await chat.respond(engine, cleaned(body) if self._options.prefix_hygiene == "all" else body)

    async def create_message(self, engine: Engine, body: MessagesBody) -> Response:
        """The next message of a chat, in Anthropic's form."""
        return await create_message(engine, body, hygiene=self._options.prefix_hygiene != "off")

    async def count_message(self, engine: Engine, body: CountTokensBody) -> Response:
        """Counts the tokens of the prompt that /v1/messages would make."""
        return await count_message(engine, body, hygiene=self._options.prefix_hygiene != "off")

    async def create_response(self, engine: Engine, body: ResponsesBody) -> Response:
        """The next items of a chat, in the form of OpenAI's responses."""
        return await create_response(engine, body, hygiene=self._options.prefix_hygiene == "all")

    async def count_input(self, engine: Engine, body: InputTokensBody) -> Response:
        """Counts the tokens of the prompt that /v1/responses would make."""
        return await count_input(engine, body, hygiene=self._options.prefix_hygiene == "all")

    async def openai_embeddings(self, engine: Engine, body: EmbeddingsBody) -> Response:
        """Embeddings in OpenAI's shape."""
        return await embeddings.embed(engine, self._options.pooling, body, openai=True)

    async def embeddings(self, engine: Engine, body: EmbeddingsBody) -> Response:
        """Embeddings in llama-server's shape."""
        return await embeddings.embed(engine, self._options.pooling, body, openai=False)
