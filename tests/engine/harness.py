"""Tiny engines, and how to run requests through them step by step."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import httpx

from pascal_engine.backend.protocol import KvKind
from pascal_engine.engine import BackendName, Engine, EngineOptions
from pascal_engine.gguf import ModelFile
from pascal_engine.sampling.params import SamplingParams
from pascal_engine.schedule.sequence import Delta, Event, Failed, Finished, GenerationRequest
from pascal_engine.tokenizer import Tokenizer

DATA = Path(__file__).parents[1] / "data" / "engine"
BACKENDS: tuple[BackendName, ...] = ("reference", "cpu")
GREEDY = SamplingParams(temperature=0)

Json: TypeAlias = dict[str, Any]
Post: TypeAlias = Callable[..., Awaitable[httpx.Response]]
"""post(path, **fields) of a JSON body."""

Logits: TypeAlias = dict[tuple[int, ...], list[bytes]]
"""For each prompt the logits that its sequence was given, in order, bit for bit."""


@dataclass
class Inbox:
    """Collects the events of one sequence."""

    events: list[Event] = field(default_factory=list)

    @property
    def tokens(self) -> list[int]:
        return [token for event in self.events if isinstance(event, Delta) for token in event.tokens]

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, Delta))

    @property
    def end(self) -> Finished | Failed:
        last = self.events[-1]
        assert isinstance(last, Finished | Failed)
        return last


def open_tiny(
    path: Path, parallel: int = 6, ctx: int = 512, kv: KvKind = "f32", backend: BackendName = "cpu"
) -> Engine:
    """An engine of `parallel` slots of `ctx` tokens."""
    return Engine.open(path, EngineOptions(parallel * ctx, parallel, kv, kv, backend=backend))


@cache
def tiny_tokenizer() -> Tokenizer:
    """512 tokens, among them all bytes; 507 and 509 end an answer."""
    return Tokenizer.from_file(ModelFile(DATA / "qwen35-tiny.gguf"))


def submit(engine: Engine, request: GenerationRequest) -> Inbox:
    inbox = Inbox()
    engine.scheduler.submit(request, inbox.events.append)
    return inbox


def drain(engine: Engine) -> None:
    while engine.scheduler.has_work:
        engine.scheduler.step()


def run(engine: Engine, *requests: GenerationRequest) -> list[Inbox]:
    """Submits all at once and steps until all are done."""
    inboxes = [submit(engine, request) for request in requests]
    drain(engine)
    return inboxes


def events(response: httpx.Response) -> list[Json]:
    """The JSON of a stream's events, `[DONE]` left out."""
    assert response.headers["content-type"].startswith("text/event-stream")
    lines = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    return [json.loads(line) for line in lines if line != "[DONE]"]
