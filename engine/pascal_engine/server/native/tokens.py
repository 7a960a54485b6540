"""/tokenize and /detokenize."""

import asyncio

from starlette.responses import JSONResponse, Response

from pascal_engine.engine import Engine
from pascal_engine.server.native.schemas import DetokenizeBody, TokenizeBody
from pascal_engine.server.prompts import check_tokens, mixed_tokens
from pascal_engine.tokenizer import Tokenizer


async def tokenize(engine: Engine, body: TokenizeBody) -> Response:
    """Token ids of a text."""
    # Of any length, which is why it is done beside the event loop, as is the other way.
    return await asyncio.to_thread(_tokenized, engine, body)


async def detokenize(engine: Engine, body: DetokenizeBody) -> Response:
    """The text of token ids."""
    return await asyncio.to_thread(_detokenized, engine, body)


def _tokenized(engine: Engine, body: TokenizeBody) -> Response:
    tokens = mixed_tokens(engine, body.content, add_special=body.add_special, parse_special=body.parse_special)
    if not body.with_pieces:
        return JSONResponse({"tokens": tokens})
    return JSONResponse({"tokens": [{"id": token, "piece": _piece(engine.tokenizer, token)} for token in tokens]})


def _detokenized(engine: Engine, body: DetokenizeBody) -> Response:
    check_tokens(engine, body.tokens)
    return JSONResponse({"content": engine.tokenizer.decode(body.tokens)})


def _piece(tokenizer: Tokenizer, token: int) -> str | list[int]:
    """A token's text, or its bytes where they are no text by themselves, as llama-server does."""
    piece = tokenizer.token_bytes(token)
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return list(piece)
