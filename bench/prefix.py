"""What a shared prefix costs: `python bench/prefix.py MODEL.gguf ...`, writes docs/results/prefix.json.

Four forks of a prefix of 4096 tokens that arrive together, with as many slots and with fewer; and the second turn of a
chat whose first has 4096 tokens. Each figure is of tokens really prefilled, beside the bar, and each time stands beside
that of the same requests with no reuse. Weights may be random (`pascal-engine synth`): only counts and time matter.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from machine import machine
from rich.console import Console

from pascal_engine.engine import Engine, EngineOptions
from pascal_engine.sampling.params import SamplingParams
from pascal_engine.schedule.sequence import Delta, Event, Finished, GenerationRequest

LONG, SUFFIX, ANSWER, MESSAGE = 4096, 64, 48, 40
FORKS = 4
CONSOLE = Console(stderr=True)


@dataclass
class Answer:
    """The events of one request."""

    tokens: list[int] = field(default_factory=list)
    prefilled: int = 0

    def take(self, event: Event) -> None:
        assert isinstance(event, Delta | Finished), event
        if isinstance(event, Delta):
            self.tokens += event.tokens
        else:
            self.prefilled = event.usage.prompt_n


def run(engine: Engine, *prompts: list[int], n: int = 1, reuse: bool = True) -> tuple[list[Answer], float]:
    """Answers of requests that arrive together, and the seconds until all are there."""
    answers = [Answer() for _ in prompts]
    began = time.perf_counter()
    for prompt, answer in zip(prompts, answers, strict=True):
        request = GenerationRequest(tuple(prompt), n, SamplingParams(temperature=0), ignore_eos=True, reuse=reuse)
        engine.scheduler.submit(request, answer.take)
    while engine.scheduler.has_work:
        engine.scheduler.step()
    return answers, round(time.perf_counter() - began, 2)


def tokens(engine: Engine, count: int, start: int) -> list[int]:
    """So many tokens of any kind."""
    return [(start + place * place) % (engine.info.n_vocab - 1) for place in range(count)]


def forks(open_engine: Callable[[int], Engine]) -> list[dict[str, object]]:
    """One row for each number of slots."""
    rows: list[dict[str, object]] = []
    for slots in (FORKS, 1):
        engine = open_engine(slots)
        prefix = tokens(engine, LONG, 1)
        prompts = [prefix + tokens(engine, SUFFIX, 1000 * (index + 1)) for index in range(FORKS)]
        answers, seconds = run(engine, *prompts)
        prefilled, needed = sum(answer.prefilled for answer in answers), LONG + FORKS * SUFFIX
        assert prefilled <= 1.05 * needed
        alone = run(engine, prompts[0], reuse=False)[1]
        rows.append({"slots": slots, "prefilled": prefilled, "needed": needed, "ratio": prefilled / needed})
        rows[-1] |= {"seconds": seconds, "seconds of one with no reuse": alone}
        CONSOLE.print(rows[-1])
    return rows


def second_turn(engine: Engine) -> dict[str, object]:
    """The answer comes back as the tokens that it was, with a new message behind it."""
    first_prompt = tokens(engine, LONG, 1)
    (first,), first_seconds = run(engine, first_prompt, n=ANSWER)
    prompt = first_prompt + first.tokens + tokens(engine, MESSAGE, 77)
    (second,), seconds = run(engine, prompt)
    (anew,), anew_seconds = run(engine, prompt, reuse=False)
    bar = int(0.02 * first.prefilled) + MESSAGE
    assert second.prefilled <= bar
    row: dict[str, object] = {"first prefilled": first.prefilled, "new message": MESSAGE}
    row |= {"second prefilled": second.prefilled, "bar": bar}
    row["same answer as with no reuse"] = second.tokens == anew.tokens
    row |= {"seconds": seconds, "seconds of the first": first_seconds, "seconds with no reuse": anew_seconds}
    CONSOLE.print(row)
    return row


def main() -> None:
    """All figures of all models."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="+", metavar="MODEL")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("docs/results/prefix.json"))
    arguments = parser.parse_args()
    results: dict[str, object] = {}
    for path in arguments.models:

        def open_engine(slots: int, path: Path = path) -> Engine:
            context = LONG + 512
            return Engine.open(path, EngineOptions(slots * context, slots, threads=arguments.threads))

        engine = open_engine(1)
        results[engine.info.name] = {"forks": forks(open_engine), "second turn": second_turn(engine)}
    arguments.out.write_text(json.dumps({"machine": machine(), "models": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
