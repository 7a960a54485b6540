"""From what a client sends to the token ids of a prompt."""

from collections.abc import Sequence

from pascal_engine.engine import Engine
from pascal_engine.server.errors import ApiError


def prompt_tokens(engine: Engine, prompt: str | Sequence[str | int]) -> list[int]:
    """Token ids of a prompt of text, ids or both; one that is empty or holds ids outside the vocabulary is a 400."""
    _refuse_hopeless(engine, [prompt] if isinstance(prompt, str) else prompt)
    tokens = mixed_tokens(engine, prompt, add_special=True, parse_special=True)
    if not tokens:
        raise ApiError(400, "the prompt is empty; give at least one token")
    return tokens


def mixed_tokens(
    engine: Engine, content: str | Sequence[str | int], *, add_special: bool, parse_special: bool
) -> list[int]:
    """Token ids of text, ids or both; only a text at the beginning gets the begin token."""
    parts = [content] if isinstance(content, str) else content
    check_tokens(engine, [part for part in parts if isinstance(part, int)])
    tokens: list[int] = []
    for index, part in enumerate(parts):
        if isinstance(part, int):
            tokens.append(part)
        else:
            tokens += engine.tokenizer.encode(part, add_special=add_special and index == 0, parse_special=parse_special)
    return tokens


def _refuse_hopeless(engine: Engine, parts: Sequence[str | int]) -> None:
    """Raises a 400 for a text that no tokenization fits into a slot: spares the event loop the work of making one."""
    n_bytes = sum(len(part.encode("utf-8", "replace")) for part in parts if isinstance(part, str))
    least = -(-n_bytes // engine.tokenizer.most_bytes)
    if least > engine.scheduler.n_ctx:
        reason = f"the prompt has at least {least} tokens, and a slot's context holds {engine.scheduler.n_ctx}"
        sizes = {"n_prompt_tokens": least, "n_ctx": engine.scheduler.n_ctx}
        raise ApiError(400, reason, "exceed_context_size_error", **sizes)


def check_tokens(engine: Engine, tokens: list[int]) -> None:
    """Raises a 400 if a token id is not in the vocabulary."""
    n_vocab = engine.tokenizer.n_vocab
    unknown = next((token for token in tokens if not 0 <= token < n_vocab), None)
    if unknown is not None:
        raise ApiError(400, f"token id {unknown} is not in the vocabulary; ids run from 0 to {n_vocab - 1}")
