"""The field `logit_bias` in all its forms."""

import math
from collections.abc import Iterable

from pascal_engine.server.errors import ApiError
from pascal_engine.tokenizer import Tokenizer

_FORMS = "'logit_bias' must be a list of [token id or text, bias or false], or an object of such pairs"


def parse_logit_bias(given: list[object] | dict[str, object], tokenizer: Tokenizer) -> tuple[tuple[int, float], ...]:
    """One bias for each token that is named; `false` bans a token, a text stands for each of its tokens, and what is
    named twice adds up. Raises a 400 for anything else."""
    biases: dict[int, float] = {}
    for key, value in _pairs(given):
        bias = _bias(value)
        for token in _tokens(key, tokenizer):
            biases[token] = biases.get(token, 0.0) + bias
    return tuple(biases.items())


def _pairs(given: list[object] | dict[str, object]) -> Iterable[tuple[object, object]]:
    if isinstance(given, dict):
        return [(int(key) if _is_number(key) else key, value) for key, value in given.items()]
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in given):
        raise ApiError(400, _FORMS)
    return [(pair[0], pair[1]) for pair in given if isinstance(pair, list)]


def _is_number(key: str) -> bool:
    return key.isascii() and key.removeprefix("-").isdecimal() and len(key) < 20


def _bias(value: object) -> float:
    if value is False:
        return -math.inf
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= 1e30:
        return float(value)
    raise ApiError(400, _FORMS)


def _tokens(key: object, tokenizer: Tokenizer) -> list[int]:
    if isinstance(key, str):
        return tokenizer.encode(key)
    if not isinstance(key, int) or isinstance(key, bool):
        raise ApiError(400, _FORMS)
    if not 0 <= key < tokenizer.n_vocab:
        raise ApiError(400, f"'logit_bias' names token {key}; ids run from 0 to {tokenizer.n_vocab - 1}")
    return [key]
