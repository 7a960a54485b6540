"""The checks. Each asks for answers together and alone, and compares them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from decomp_gauntlet.bleed import arrivals
from decomp_gauntlet.bleed.answer import Answer, Ask
from decomp_gauntlet.bleed.arrivals import Begun
from decomp_gauntlet.bleed.findings import Row
from decomp_gauntlet.bleed.judge import Difference, Judge, Kind
from decomp_gauntlet.bleed.prompts import Prompts
from decomp_gauntlet.bleed.target import Target


class Trial:
    """What all checks share: the engine, the prompts, and the rows that fill up."""

    def __init__(self, target: Target, n_slots: int, n_long: int, seed: int, tick: Callable[[], None]) -> None:
        self.target = target
        self.n_slots = n_slots
        self.n_long = n_long
        self.rng = random.Random(seed)
        self.prompts = Prompts(self.rng)
        self.judge = Judge(self.prompts.codewords.issued)
        self.rows: dict[str, Row] = {}
        self._tick = tick

    def row(self, name: str) -> Row:
        """The row of a check; a new one at the first round."""
        return self.rows.setdefault(name, Row(name))

    async def send(self, ask: Ask, begun: Begun = lambda: None, leave_after: int | None = None) -> Answer:
        """One request, counted as progress."""
        answer = await self.target.answer(ask, begun, leave_after)
        self._tick()
        return answer

    async def alone(self, asks: Sequence[Ask]) -> list[Answer]:
        """One after the other, each computed anew where the engine lets us say so."""
        return [await self.send(replace(ask, cached=False)) for ask in asks]

    def compare(
        self, row: Row, number: int, asks: Sequence[Ask], answers: Sequence[Answer], alone: Sequence[Answer]
    ) -> None:
        """Judges the answers of one batch."""
        runs = list(zip(asks, alone, strict=True))
        for ask, answer, own in zip(asks, answers, alone, strict=True):
            row.compare(self.judge, number, ask, answer, own, [run for run in runs if run[0] is not ask])


class Check(Protocol):
    """One kind of traffic."""

    def n_requests(self, n_slots: int) -> int:
        """How many a round takes."""
        ...

    async def run(self, trial: Trial, number: int) -> None:
        """One round, counted from 1: in odd ones the engine computes every prompt anew where it lets us say so."""
        ...


class Repeated:
    """Every request has its model say a codeword of its own."""

    def n_requests(self, n_slots: int) -> int:
        return 2 * n_slots

    async def run(self, trial: Trial, number: int) -> None:
        asks = [trial.prompts.repeat(f"request {n}", cached=_cached(number)) for n in range(1, trial.n_slots + 1)]
        answers = await arrivals.all_at_once(trial.send, asks)
        alone = await trial.alone(asks)
        row = trial.row("codewords")
        for ask, own in zip(asks, alone, strict=True):
            row.kept(ask, own)
        trial.compare(row, number, asks, answers, alone)


class Identical:
    """One request many times at once must have one answer, that which it has alone before and afterwards."""

    def n_requests(self, n_slots: int) -> int:
        return n_slots + 2

    async def run(self, trial: Trial, number: int) -> None:
        ask = trial.prompts.explain("a twin", cached=_cached(number))
        twins = [replace(ask, label=f"twin {n}") for n in range(1, trial.n_slots + 1)]
        (before,) = await trial.alone([ask])
        answers = await arrivals.all_at_once(trial.send, twins)
        (after,) = await trial.alone([ask])
        row = trial.row("identical")
        counts = Counter(answer.content for answer in answers)
        expected = before.content if before.content in counts else counts.most_common(1)[0][0]
        for twin, answer in zip(twins, answers, strict=True):
            difference = trial.judge.compare(twin, answer, before, ())
            if answer.content != expected:
                at = difference.at if difference else 0
                difference = Difference(Kind.UNEQUAL, at, f"{len(counts)} distinct answers to identical requests")
            row.judged(number, twin, answer, before, difference)
        row.compare(trial.judge, number, replace(ask, label="the solo run afterwards"), after, before, ())


class Distinct:
    """Requests of their own, in four patterns of arrival, must each have the answer that they have alone."""

    def n_requests(self, n_slots: int) -> int:
        return 5 * n_slots + 2 + max(1, n_slots // 3)

    async def run(self, trial: Trial, number: int) -> None:
        cached = _cached(number)
        asks = [trial.prompts.explain(f"request {n}", cached=cached) for n in range(1, trial.n_slots + 1)]
        long = trial.prompts.long("the long request", trial.n_long, cached=cached)
        send, rng = trial.send, trial.rng
        answers = {
            "all at once": await arrivals.all_at_once(send, asks),
            "one by one": await arrivals.one_by_one(send, asks, rng),
            "around a prefill": await arrivals.around_a_prefill(send, asks, long),
            "a third hang up": await arrivals.with_departures(send, asks, rng, trial.target.max_tokens),
        }
        alone = await trial.alone([*asks, long])
        for name, given in answers.items():
            n = len(given)
            trial.compare(trial.row(name), number, [*asks, long][:n], given, alone[:n])


@dataclass(frozen=True)
class Turn:
    """A message of a chat, with all before it, and its answer."""

    ask: Ask
    answer: Answer


class Chat:
    """A conversation with a codeword; its own answers go into its history."""

    def __init__(self, label: str, codeword: str, turns: Sequence[tuple[str, str]]) -> None:
        self.label, self.codeword = label, codeword
        self._turns = list(turns)
        self.turns: list[Turn] = []

    @property
    def over(self) -> bool:
        """Whether all has been said."""
        return len(self.turns) == len(self._turns)

    async def go_on(self, trial: Trial) -> None:
        """Says the next message and takes the answer in."""
        topic, content = self._turns[len(self.turns)]
        history = [*self.turns[-1].ask.messages, _said("assistant", self.turns[-1].answer.text)] if self.turns else []
        label = f"{self.label}, turn {len(self.turns) + 1}"
        ask = Ask(label, (*history, _said("user", content)), self.codeword, topic)
        self.turns.append(Turn(ask, await trial.send(ask)))


class Churned:
    """More chats than slots, in a random order, must go on as the same turns do alone."""

    N_TURNS = 4

    def n_requests(self, n_slots: int) -> int:
        return 2 * 2 * n_slots * self.N_TURNS

    async def run(self, trial: Trial, number: int) -> None:
        words = [trial.prompts.codewords.make() for _ in range(2 * trial.n_slots)]
        chats = [
            Chat(f"chat {n}", word, trial.prompts.turns(word, self.N_TURNS)) for n, word in enumerate(words, start=1)
        ]
        waiting = list(chats)

        async def serve() -> None:
            while waiting:
                chat = waiting.pop(trial.rng.randrange(len(waiting)))
                await chat.go_on(trial)
                if not chat.over:
                    waiting.append(chat)

        await arrivals.together(serve() for _ in range(trial.n_slots))
        turns = [turn for chat in chats for turn in chat.turns]
        alone = [await trial.send(turn.ask) for turn in turns]
        row = trial.row("chats")
        for turn, own in zip(turns, alone, strict=True):
            if len(turn.ask.messages) > 2 * (self.N_TURNS - 1):
                row.kept(turn.ask, own)
        trial.compare(row, number, [turn.ask for turn in turns], [turn.answer for turn in turns], alone)


CHECKS: tuple[Check, ...] = (Repeated(), Identical(), Distinct(), Churned())


def _cached(number: int) -> bool:
    return number % 2 == 0


def _said(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}
