"""OpenAI's legacy route /v1/completions: text goes on, in one or several choices for one or several prompts."""

import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Annotated, Self

from pydantic import Field, model_validator
from starlette.responses import Response

from pascal_engine.engine import Engine
from pascal_engine.schedule.sequence import Delta, Finished, GenerationRequest, Usage
from pascal_engine.server.errors import not_supported
from pascal_engine.server.generations import Generations, Indexed
from pascal_engine.server.preparing import prepared
from pascal_engine.server.prompts import prompt_tokens
from pascal_engine.server.respond import frame, stream, whole
from pascal_engine.server.schemas import GenerationBody
from pascal_engine.server.text_logprobs import Logprobs, TextLogprobs, joined
from pascal_engine.server.timings import finish_reason, openai_usage, timings

MOST_CHOICES = 128
MOST_LOGPROBS = 1000

Prompt = str | list[int]


class TextCompletionBody(GenerationBody):
    """/v1/completions; `prompt` is one prompt or a list of them, each a text or token ids."""

    prompt: Prompt | list[Prompt] = Field(description="A text, its token ids, or a list of such prompts.")
    n: Annotated[int, Field(ge=1, le=MOST_CHOICES)] = Field(
        1, description="Choices for each prompt; with a seed, each has its own: the seed, the seed + 1, and so on."
    )
    best_of: int | None = Field(None, description="May only be the same as `n`.")
    echo: bool = Field(False, description="Each choice begins with its prompt; not together with `logprobs`.")
    logprobs: Annotated[int, Field(ge=0, le=MOST_LOGPROBS)] | None = Field(
        None, description="Each token comes with the logarithm of its probability, and those of the N likeliest ones."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.best_of not in (None, self.n):
            raise not_supported("'best_of' other than 'n'")
        if self.echo and self.logprobs is not None:
            raise not_supported("'logprobs' together with 'echo'")
        if len(self.prompts) * self.n > MOST_CHOICES:
            raise ValueError(f"prompts times 'n' make more than {MOST_CHOICES} choices; send fewer prompts at once")
        return self

    @property
    def prompts(self) -> list[Prompt]:
        """The prompts, one or several."""
        if isinstance(self.prompt, list) and any(isinstance(part, str | list) for part in self.prompt):
            return [part for part in self.prompt if isinstance(part, str | list)]
        return [self.prompt]  # type: ignore[list-item]

    def requests(self, engine: Engine, tokens: list[int]) -> list[GenerationRequest]:
        """A request for each choice of a prompt. Choice i of a seeded request has the seed that is larger by i."""
        request = self.request(engine, tokens)
        sampling = request.sampling
        if self.logprobs is not None:
            sampling = replace(sampling, n_probs=max(self.logprobs, 1))
        seeds = [None if sampling.seed is None else sampling.seed + choice for choice in range(self.n)]
        return [replace(request, sampling=replace(sampling, seed=seed)) for seed in seeds]


async def complete(engine: Engine, body: TextCompletionBody) -> Response:
    """Starts all choices and answers in one piece or as a stream."""
    prompts, requests = await prepared(_plan, engine, body)
    run = Generations(engine, requests)
    shape = _Shape(engine, body, prompts)
    return stream(run, shape.frames, end="data: [DONE]\n\n") if body.stream else whole(run, shape.answer)


def _plan(engine: Engine, body: TextCompletionBody) -> tuple[list[list[int]], list[GenerationRequest]]:
    """The tokens of all prompts, and the requests for all choices: slow work, which belongs off the event loop."""
    prompts = [prompt_tokens(engine, prompt) for prompt in body.prompts]
    return prompts, [request for tokens in prompts for request in body.requests(engine, tokens)]


@dataclass
class _Choice:
    """A choice under way: what it has given so far."""

    index: int
    logprobs: TextLogprobs | None
    text: str
    told: list[Logprobs] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    finished: Finished | None = None

    def take(self, event: Delta | Finished) -> None:
        if isinstance(event, Finished):
            self.finished = event
            return
        self.text += event.text
        self.tokens += event.tokens
        if self.logprobs is not None:
            self.told.append(self.logprobs.take(event))

    def part(self, *, return_tokens: bool) -> dict[str, object]:
        """What was not given yet, as the choice of an answer or a chunk."""
        content: dict[str, object] = {
            "index": self.index,
            "text": self.text,
            "logprobs": joined(self.told) if self.told else None,
            "finish_reason": finish_reason(self.finished) if self.finished else None,
        }
        content |= {"tokens": self.tokens} if return_tokens else {}
        self.text, self.told, self.tokens = "", [], []
        return content


class _Shape:
    """The JSON objects of one answer."""

    def __init__(self, engine: Engine, body: TextCompletionBody, prompts: list[list[int]]) -> None:
        self._body = body
        self._head = {
            "id": f"cmpl-{uuid.uuid4().hex}",
            "object": "text_completion",
            "created": int(time.time()),
            "model": body.model or engine.info.name,
            "system_fingerprint": "pascal-engine",
        }
        self._choices = []
        for index in range(len(prompts) * body.n):
            prompt = body.prompts[index // body.n]
            echo = prompt if isinstance(prompt, str) else engine.tokenizer.decode(prompt)
            logprobs = None if body.logprobs is None else TextLogprobs(engine.tokenizer, body.logprobs)
            self._choices.append(_Choice(index, logprobs, echo if body.echo else ""))

    def answer(self, events: list[Indexed]) -> dict[str, object]:
        for index, event in events:
            self._take(index, event)
        return self._envelope(self._choices) | self._ending()

    def frames(self, indexed: Indexed) -> Iterator[str]:
        """The chunk that tells of an event; the last one of all holds the usage."""
        choice = self._take(*indexed)
        if choice.finished is None and not choice.text and not (self._body.return_tokens and choice.tokens):
            return
        ending: dict[str, object] = {}
        if choice.finished is not None:
            ending = self._ending() if all(each.finished for each in self._choices) else {}
            ending |= {"timings": timings(choice.finished.usage)}
        yield frame(self._envelope([choice]) | ending)

    def _take(self, index: int, event: object) -> _Choice:
        assert isinstance(event, Delta | Finished)
        self._choices[index].take(event)
        return self._choices[index]

    def _envelope(self, choices: list[_Choice]) -> dict[str, object]:
        return self._head | {"choices": [choice.part(return_tokens=self._body.return_tokens) for choice in choices]}

    def _ending(self) -> dict[str, object]:
        """Usage of all choices together, and the times of the first; the prompt of several choices is counted once."""
        usages = [choice.finished.usage for choice in self._choices if choice.finished]
        return {"usage": _usage(usages, self._body.n), "timings": timings(usages[0])}


def _usage(usages: list[Usage], n: int) -> dict[str, object]:
    """OpenAI's `usage` of the choices, of which every `n` have one prompt."""
    first = usages[::n]
    cached, computed = (sum(getattr(usage, name) for usage in first) for name in ("cache_n", "prompt_n"))
    return openai_usage(Usage(cached, computed, 0, sum(usage.predicted_n for usage in usages), 0))
