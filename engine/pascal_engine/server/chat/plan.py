"""From the body of a chat to what the engine is asked to do."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from pascal_engine.engine import Engine
from pascal_engine.schedule.sequence import GenerationRequest
from pascal_engine.server.chat.dialect import Dialect, Thinking
from pascal_engine.server.chat.grammar import constraint_for
from pascal_engine.server.chat.prompt import render_chat
from pascal_engine.server.chat.schema import MOST_LOGPROBS, ChatBody, Function
from pascal_engine.server.errors import ApiError, not_supported
from pascal_engine.server.prompts import prompt_tokens


@dataclass(frozen=True)
class ChatPlan:
    """A request, and what it takes to read its answer: `functions` are those that may be called."""

    request: GenerationRequest
    dialect: Dialect
    thinking: Thinking
    functions: tuple[Function, ...]

    @classmethod
    def make(cls, engine: Engine, body: ChatBody) -> "ChatPlan":
        """Renders, tokenises and compiles: slow work, which belongs off the event loop."""
        dialect = Dialect.of(engine.template.source)
        functions = _callable_functions(body, dialect)
        if body.n > len(engine.scheduler.slots):
            most = len(engine.scheduler.slots)
            raise ApiError(400, f"'n' is {body.n}, but this engine has {most} slots; ask for at most {most} choices")
        text = render_chat(engine.template, body)
        thinking = dialect.thinking_after(body.messages[-1].text if body.continues else text)
        tokens = prompt_tokens(engine, text)
        request = body.request(tokens)
        constraint = constraint_for(engine.constraints, body, dialect, thinking, functions)
        if constraint is not None and request.constraint is not None:
            raise ApiError(400, "a grammar cannot hold beside 'tools' or 'response_format'; leave one of them out")
        marks = message_ends(tokens, engine.tokenizer.end_of_generation)
        request = replace(request, marks=marks, constraint=constraint or request.constraint)
        if body.logprobs:
            wanted = MOST_LOGPROBS if body.top_logprobs is None else body.top_logprobs
            request = replace(request, sampling=replace(request.sampling, n_probs=max(wanted, 1)))
        return cls(request, dialect, "no" if body.reasoning_format == "none" else thinking, functions)


def message_ends(tokens: list[int], end_of_turn: Iterable[int]) -> tuple[int, ...]:
    """Where in a prompt state is worth keeping: after the first message, which other chats may share, and after the
    last two, where the next turn, or another try at this one, leaves the prompt."""
    ends = [position + 1 for position, token in enumerate(tokens) if token in end_of_turn]
    return tuple(sorted({*ends[:1], *ends[-2:]}))


def _callable_functions(body: ChatBody, dialect: Dialect) -> tuple[Function, ...]:
    choice = body.choice
    if not body.tools or choice.mode == "none":
        return ()
    if dialect.tools is None:
        raise not_supported("a call of tools in the format of this model's chat template")
    functions = tuple(function for function in body.functions if choice.name in (None, function.name))
    odd = next((function.name for function in functions if not re.fullmatch(r"[\w.:/-]+", function.name)), None)
    if odd is not None:
        raise ApiError(400, f"the tool '{odd}' has a name of other characters than letters, digits and _ . : / -")
    return functions
