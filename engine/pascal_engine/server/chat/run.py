"""One chat on its way: from the body of a request to the events of its answer."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Literal

from pascal_engine.engine import Engine
from pascal_engine.schedule.sequence import Delta, Finished, GenerationRequest, Progress, Usage
from pascal_engine.server.chat.events import ChatEnd, ChatEvent, PromptProgress
from pascal_engine.server.chat.parser import OutputParser
from pascal_engine.server.chat.plan import ChatPlan
from pascal_engine.server.chat.schema import ChatBody
from pascal_engine.server.generation import Generation
from pascal_engine.server.preparing import prepared


async def start_chat(engine: Engine, body: ChatBody) -> "ChatRun":
    """Begins the answer to a chat. Whatever is wrong with the body is an `ApiError` or another error that
    server/errors.py translates; then nothing was begun."""
    plan = await prepared(ChatPlan.make, engine, body)
    return ChatRun(engine, plan.request, OutputParser(plan.dialect, plan.thinking, plan.functions))


async def start_choices(engine: Engine, body: ChatBody) -> list["ChatRun"]:
    """Begins `body.n` answers to one chat, whose prompt is prefilled once. With a seed, each answer has its own:
    the seed, the seed + 1, and so on. As with llama-server, an answer that goes on with a message holds that too."""
    plan = await prepared(ChatPlan.make, engine, body)
    runs: list[ChatRun] = []
    try:
        for index in range(body.n):
            thinking = plan.lead_thinking if plan.lead else plan.thinking
            parser = OutputParser(plan.dialect, thinking, plan.functions)
            runs.append(ChatRun(engine, _with_seed(plan.request, index), parser, plan.lead))
    except BaseException:
        for run in runs:
            run.cancel()
        raise
    return runs


class ChatRun:
    """An answer that is being generated, behind the text `lead`; `n_prompt` is the number of the prompt's tokens."""

    def __init__(self, engine: Engine, request: GenerationRequest, parser: OutputParser, lead: str = "") -> None:
        self.n_prompt = len(request.tokens)
        self._parser, self._lead = parser, lead
        self._generation = Generation(engine.worker, request)
        self._n_predicted = 0

    def cancel(self) -> None:
        """Frees the slot; harmless after the end."""
        self._generation.cancel()

    def usage(self) -> Usage:
        """Tokens and times so far."""
        return self._generation.usage(self._n_predicted)

    async def events(self) -> AsyncIterator[ChatEvent]:
        """What happens, in order; the last event is `ChatEnd`. A failure of the engine is an `ApiError`."""
        waiting: tuple[Delta, ...] = ()
        async for event in self._generation.events():
            if isinstance(event, Progress):
                yield PromptProgress(event)
                continue
            parts, self._lead = self._parser.add(self._lead) if self._lead else [], ""
            if isinstance(event, Finished):
                parts += self._parser.finish()
            else:
                waiting += (event,)
                self._n_predicted += len(event.tokens)
                parts += self._parser.add(event.text)
            for part in parts:
                yield replace(part, deltas=waiting)
                waiting = ()
            if isinstance(event, Finished):
                yield ChatEnd(self._reason(event), event, waiting)

    def _reason(self, finished: Finished) -> Literal["stop", "length", "tool_calls"]:
        if finished.reason == "limit":
            return "length"
        return "tool_calls" if self._parser.n_calls else "stop"


def _with_seed(request: GenerationRequest, index: int) -> GenerationRequest:
    seed = request.sampling.seed
    if seed is None or not index:
        return request
    return replace(request, sampling=replace(request.sampling, seed=seed + index))
