"""From the body of a chat to what the engine is asked to do."""

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace

from pascal_engine.engine import Engine
from pascal_engine.schedule.sequence import GenerationRequest
from pascal_engine.server.chat.detect import dialect_of
from pascal_engine.server.chat.dialect import OPEN_THOUGHT, Dialect, Thinking
from pascal_engine.server.chat.grammar import constraint_for
from pascal_engine.server.chat.prompt import render_chat
from pascal_engine.server.chat.schema import ChatBody, Function
from pascal_engine.server.errors import ApiError, not_supported
from pascal_engine.server.prompts import prompt_tokens


@dataclass(frozen=True)
class ChatPlan:
    """A request, and what it takes to read its answer: `functions` are those that may be called.

    `lead` is the end of the prompt that llama-server shows as the beginning of the answer: a message to go on with, and
    the opening tag of a thought that is left in the content. `thinking` holds behind it, `lead_thinking` before it.
    """

    request: GenerationRequest
    dialect: Dialect
    functions: tuple[Function, ...]
    thinking: Thinking
    lead: str
    lead_thinking: Thinking

    @classmethod
    def make(cls, engine: Engine, body: ChatBody) -> "ChatPlan":
        """Renders, tokenises and compiles: slow work, which belongs off the event loop."""
        if body.n > len(engine.scheduler.slots):
            most = len(engine.scheduler.slots)
            raise ApiError(400, f"'n' is {body.n}, but this engine has {most} slots; ask for at most {most} choices")
        dialect = dialect_of(engine.template)
        functions = _callable_functions(body, dialect)
        if body.grammar and (functions or body.schema_wanted is not None):
            raise ApiError(400, "'grammar' cannot hold beside 'tools' or 'response_format'; leave one of them out")
        text = render_chat(engine, body)
        last = body.messages[-1].text
        thinking = dialect.thinking_within(last) if body.continues else dialect.thinking_after(text)
        request = body.request(engine, prompt_tokens(engine, text))
        constraint = constraint_for(engine.constraints, body, dialect, thinking, functions)
        marks = message_ends(request.tokens, engine.tokenizer.end_of_generation)
        request = replace(
            request,
            marks=marks,
            constraint=constraint or request.constraint,
            report_progress=body.return_progress and body.stream,
        )
        splits = dialect.thinks and (body.reasoning_format or engine.defaults.reasoning_format) != "none"
        lead = last if body.continues else ""
        if thinking == "open" and not splits and not lead:
            lead = text[text.rindex(OPEN_THOUGHT) :]
        return cls(request, dialect, functions, thinking if splits else "no", lead, "may" if splits else "no")


def message_ends(tokens: Sequence[int], end_of_turn: Container[int]) -> tuple[int, ...]:
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
