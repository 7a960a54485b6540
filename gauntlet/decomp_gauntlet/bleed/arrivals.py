"""How requests come in: each pattern ends with the answers in the order of the requests."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from decomp_gauntlet.bleed.answer import Answer, Ask

T = TypeVar("T")


class Begun(Protocol):
    """Called when an answer begins."""

    def __call__(self) -> None: ...


class Asker(Protocol):
    """Sends a request; see `Target.answer`."""

    async def __call__(self, ask: Ask, begun: Begun = ..., leave_after: int | None = ...) -> Answer: ...


async def together(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """All at once; the first failure ends the others and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in work]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


async def all_at_once(send: Asker, asks: Sequence[Ask]) -> list[Answer]:
    """As fast as they can be sent."""
    return await together(send(ask) for ask in asks)


async def one_by_one(send: Asker, asks: Sequence[Ask], rng: random.Random) -> list[Answer]:
    """In a random order, each when the answer before it has begun."""
    order = rng.sample(range(len(asks)), len(asks))
    gates = [asyncio.Event() for _ in asks]
    answers: dict[int, Answer] = {}

    async def wait_and_send(place: int) -> None:
        if place:
            await gates[place - 1].wait()
        answers[order[place]] = await send(asks[order[place]], gates[place].set)

    await together(wait_and_send(place) for place in range(len(asks)))
    return [answers[index] for index in range(len(asks))]


async def around_a_prefill(send: Asker, asks: Sequence[Ask], long: Ask) -> list[Answer]:
    """Half of them are being answered when a long prompt comes in, and the rest with it; its answer is the last."""
    half = len(asks) // 2
    gates = [asyncio.Event() for _ in range(half)]

    async def later(ask: Ask) -> Answer:
        for gate in gates:
            await gate.wait()
        return await send(ask)

    early = [send(ask, gate.set) for ask, gate in zip(asks[:half], gates, strict=True)]
    long_answer, *answers = await together([later(long), *early, *map(later, asks[half:])])
    return [*answers, long_answer]


async def with_departures(send: Asker, asks: Sequence[Ask], rng: random.Random, max_tokens: int) -> list[Answer]:
    """All at once; a third hang up half-way and ask again, so that they come into slots that others left."""
    leaving = set(rng.sample(range(len(asks)), max(1, len(asks) // 3)))
    after = {index: rng.randint(1, max(1, max_tokens // 2)) for index in sorted(leaving)}

    async def leave_and_send(index: int) -> Answer:
        if index in leaving:
            await send(asks[index], leave_after=after[index])
        return await send(asks[index])

    return await together(leave_and_send(index) for index in range(len(asks)))
