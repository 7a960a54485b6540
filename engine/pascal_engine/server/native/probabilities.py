"""`completion_probabilities`: what `n_probs` asks for."""

import math
from collections.abc import Sequence
from typing import Any

from pascal_engine.sampling.params import TokenProbs
from pascal_engine.tokenizer import Tokenizer

_LEAST = -3.4028234663852886e38
"""The lowest number of 32 bits, llama-server's logarithm of 0."""


def token_probabilities(tokenizer: Tokenizer, probs: Sequence[TokenProbs], *, post_sampling: bool) -> list[Any]:
    """An object for each token; probabilities where `post_sampling`, else their logarithms."""
    inner = "top_probs" if post_sampling else "top_logprobs"
    return [
        {
            **_entry(tokenizer, of.token, of.logprob, post_sampling),
            inner: [_entry(tokenizer, token, logprob, post_sampling) for token, logprob in of.top],
        }
        for of in probs
    ]


def _entry(tokenizer: Tokenizer, token: int, logprob: float, post_sampling: bool) -> dict[str, Any]:
    piece = tokenizer.token_bytes(token)
    value = {"prob": math.exp(logprob)} if post_sampling else {"logprob": max(logprob, _LEAST)}
    return {"id": token, "token": _text(piece), "bytes": list(piece), **value}


def _text(piece: bytes) -> str:
    """The characters that are whole."""
    try:
        return piece.decode()
    except UnicodeDecodeError as error:
        return piece[: error.start].decode()
