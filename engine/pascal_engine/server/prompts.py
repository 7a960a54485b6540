"""From what a client sends to the token ids of a prompt."""

from collections.abc import Mapping

from pascal_engine.engine import Engine
from pascal_engine.server.errors import ApiError
from pascal_engine.server.schemas import Message


def prompt_tokens(engine: Engine, prompt: str | list[int]) -> list[int]:
    """Token ids of a prompt; one that is empty or holds ids outside the vocabulary is a 400."""
    if isinstance(prompt, str):
        _refuse_hopeless(engine, prompt)
        tokens = engine.tokenizer.encode(prompt, add_special=True, parse_special=True)
    else:
        tokens = prompt
        check_tokens(engine, tokens)
    if not tokens:
        raise ApiError(400, "the prompt is empty; give at least one token")
    return tokens


def _refuse_hopeless(engine: Engine, prompt: str) -> None:
    """Raises a 400 for a text that no tokenization fits into a slot: spares the event loop the work of making one."""
    least = -(-len(prompt.encode()) // engine.tokenizer.most_bytes)
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


def render_chat(engine: Engine, messages: list[Message], variables: Mapping[str, object]) -> str:
    """The prompt text of a chat. A last message of the assistant is a beginning that the answer continues."""
    turns = [message.model_dump() for message in messages]
    prefill = turns.pop()["content"] if len(turns) > 1 and turns[-1]["role"] == "assistant" else ""
    return engine.template.render(turns, variables=variables) + prefill
