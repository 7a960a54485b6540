"""Parts of the bleed test: the judge's distinctions, patterns of arrival, reading streams, and errors in words."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decomp_gauntlet.bleed import arrivals, command
from decomp_gauntlet.bleed.answer import Answer, Ask, Step
from decomp_gauntlet.bleed.arrivals import Begun
from decomp_gauntlet.bleed.findings import excerpt
from decomp_gauntlet.bleed.judge import RUN_TOKENS, Judge, Kind, drift
from decomp_gauntlet.bleed.prompts import Prompts
from decomp_gauntlet.bleed.stream import Collector
from decomp_router import cli
from tests.decomp_gauntlet.leaky_engines import ScriptedEngine, Streaming

OWN, FOREIGN = "badofitego", "ruvazilomu"
JUDGE = Judge([OWN, FOREIGN])
ASK = Ask("request 1", ({"role": "user", "content": f"Explain to {OWN} how ink dries."},), OWN, "how ink dries")
OTHER = Ask(
    "request 2", ({"role": "user", "content": f"Explain to {FOREIGN} why ice floats."},), FOREIGN, "why ice floats"
)


def kind(got: Answer, alone: Answer, other: Answer | None = None) -> Kind | None:
    found = JUDGE.compare(ASK, got, alone, [(OTHER, other)] if other else ())
    return found.kind if found else None


def sure(*tokens: int, logprob: float = -0.1, second: float = -4.0) -> Answer:
    """An answer whose every choice is as clear as given; the second likeliest is always token 99."""
    return Answer("", tokens, tuple(Step(token, logprob, ((token, logprob), (99, second))) for token in tokens))


def test_the_same_is_fine_and_another_text_is_a_difference() -> None:
    assert kind(Answer("ink dries"), Answer("ink dries")) is None
    assert kind(Answer("ink dries"), Answer("ink cures")) is Kind.DIFFERS
    assert kind(Answer("a", (1, 2)), Answer("b", (1, 2))) is Kind.DIFFERS
    assert kind(Answer("a"), Answer("ab")) is Kind.DIFFERS


def test_a_codeword_that_was_not_in_the_request_is_foreign() -> None:
    assert kind(Answer(f"so {FOREIGN.upper()}!"), Answer("so")) is Kind.FOREIGN
    assert kind(Answer(OWN), Answer(OWN)) is None
    assert kind(Answer(FOREIGN), Answer(FOREIGN)) is Kind.FOREIGN, "the solo run must not have it either"
    history = Ask(
        "turn 2", ({"role": "assistant", "content": FOREIGN}, {"role": "user", "content": "And?"}), OWN, "And?"
    )
    assert JUDGE.stray(history, Answer(FOREIGN)) is None, "it leaked earlier, and was reported then"


def test_going_on_as_another_request_is_foreign() -> None:
    alone, other = Answer("", tuple(range(30))), Answer("", tuple(range(100, 130)))
    assert kind(Answer("", alone.tokens[:10] + other.tokens[10:]), alone, other) is Kind.FOREIGN
    short = alone.tokens[:10] + other.tokens[10 : 9 + RUN_TOKENS]
    assert kind(Answer("", short), alone, other) is Kind.DIFFERS, "too little to be sure"
    assert JUDGE.compare(ASK, other, alone, [(replace(OTHER, codeword=OWN), other)]).kind is Kind.DIFFERS, (
        "its own chat"
    )
    assert JUDGE.compare(ASK, other, alone, [(replace(OTHER, topic="ink"), other)]).kind is Kind.DIFFERS, (
        "its own topic"
    )
    loop = Answer("", (7, 8) * 15)
    assert kind(Answer("", alone.tokens[:10] + loop.tokens), alone, loop) is Kind.DIFFERS, "any model may loop"


def test_a_clear_choice_does_not_flip_by_rounding() -> None:
    assert kind(sure(1, 99), sure(1, 2)) is Kind.CORRUPT
    assert kind(sure(1, 99, second=-0.2), sure(1, 2, second=-0.2)) is Kind.DIFFERS
    assert kind(sure(1, 5, second=-0.2), sure(1, 2, second=-0.2)) is Kind.DIFFERS
    assert kind(sure(1, 2, logprob=-1.5), sure(1, 2)) is Kind.CORRUPT, "the same tokens, but another certainty"
    assert kind(sure(1, 2, logprob=-0.2), sure(1, 2)) is None
    assert drift(sure(1, 2, logprob=-0.2), sure(1, 3)) == pytest.approx(0.1)


def test_an_excerpt_shows_what_is_around_the_difference() -> None:
    words = tuple(Step(index, 0, text=f" word{index}") for index in range(40))
    text = "".join(step.text for step in words)
    assert " word30" in excerpt(Answer(text, (), words), 30)
    assert " word3" in excerpt(Answer(text), text.index(" word3"))
    assert excerpt(Answer("text", (5, 6, 7)), 1) == "text (tokens 5 6 7)"


@given(st.integers(0, 10**6), st.integers(2, 30))
def test_codewords_and_questions_keep_requests_apart(seed: int, n: int) -> None:
    prompts = Prompts(random.Random(seed))
    asks = [prompts.explain(str(index), cached=True) for index in range(n)]
    assert len({ask.codeword for ask in asks}) == n
    assert len({ask.topic for ask in asks}) == min(n, 20)
    assert [ask.mentions(other.codeword) for ask in asks for other in asks if other is not ask].count(True) == 0
    assert abs(len(prompts.long("l", 900, cached=True).messages[0]["content"]) - 900) < 150


class Stage:
    """Answers as an engine would, and notes what happens in which order."""

    def __init__(self) -> None:
        self.log: list[str] = []

    async def send(self, ask: Ask, begun: Begun = lambda: None, leave_after: int | None = None) -> Answer:
        self.log.append(f"{ask.label} comes")
        await asyncio.sleep(0)
        begun()
        self.log.append(f"{ask.label} begins" if leave_after is None else f"{ask.label} leaves")
        await asyncio.sleep(0)
        return Answer(ask.label)


def asks(n: int) -> list[Ask]:
    return [Ask(f"{index}", (), "", "") for index in range(n)]


async def test_one_by_one_waits_for_the_answer_before_to_begin() -> None:
    stage = Stage()
    answers = await arrivals.one_by_one(stage.send, asks(4), random.Random(1))
    assert [answer.text for answer in answers] == ["0", "1", "2", "3"]
    came = [line.split()[0] for line in stage.log if "comes" in line]
    assert sorted(came) == ["0", "1", "2", "3"] != came
    for before, after in itertools.pairwise(came):
        assert stage.log.index(f"{before} begins") < stage.log.index(f"{after} comes")


async def test_a_long_prompt_comes_in_between() -> None:
    stage = Stage()
    answers = await arrivals.around_a_prefill(stage.send, asks(4), Ask("long", (), "", ""))
    assert [answer.text for answer in answers] == ["0", "1", "2", "3", "long"]
    assert stage.log.index("long comes") > max(stage.log.index("0 begins"), stage.log.index("1 begins"))
    assert stage.log.index("long comes") < stage.log.index("2 comes")


async def test_a_third_hang_up_and_ask_again() -> None:
    stage = Stage()
    answers = await arrivals.with_departures(stage.send, asks(6), random.Random(0), 8)
    assert [answer.text for answer in answers] == [str(index) for index in range(6)]
    assert sum("leaves" in line for line in stage.log) == 2
    assert sum("begins" in line for line in stage.log) == 6


async def test_a_failure_ends_all_and_is_raised_as_it_is() -> None:
    async def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await arrivals.together([fail(), asyncio.Event().wait()])  # type: ignore[list-item]


def test_a_stream_of_llama_server_is_put_together() -> None:
    collected = Collector()
    collected.add({"choices": [{"delta": {"role": "assistant", "content": None}}]})
    assert collected.n_pieces == 0
    top = [{"id": 7, "token": " a", "logprob": -0.5}, {"id": 9, "token": " b", "logprob": -1.5}]
    collected.add({"choices": [{"delta": {"reasoning_content": "hm"}, "logprobs": None}]})
    collected.add(
        {"choices": [{"delta": {"content": " a"}, "logprobs": {"content": [{**top[0], "top_logprobs": top}]}}]}
    )
    collected.add({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    collected.add({"choices": [], "usage": {"prompt_tokens": 3}})
    answer = collected.answer()
    assert answer.text == "hm a"
    assert answer.units == (7,)
    assert answer.steps[0].shortfall(9) == 1.0
    assert answer.steps[0].shortfall(1) == 1.0
    assert collected.n_pieces == 2


Handler = Callable[[httpx.Request], httpx.Response]


def refused(handler: Handler, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The one sentence with which the command gives up."""
    arguments = cli.parser().parse_args(["gauntlet", "bleed", "http://engine", *words])
    assert command.run(arguments, httpx.MockTransport(handler)) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    return said[0]


def down(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("refused")


def slow(request: httpx.Request) -> httpx.Response:
    raise httpx.ReadTimeout("")


def always(status: int, content: object) -> Handler:
    return lambda request: httpx.Response(status, json=content)


ERRORS: dict[str, tuple[Handler, str]] = {
    "down": (down, "nothing listens at http://engine; start the engine"),
    "slow": (slow, "--timeout"),
    "key": (always(401, {}), "--api-key"),
    "route": (always(404, {}), "has no /v1/chat/completions"),
    "loading": (always(503, {"error": {"message": "Loading model"}}), "503: Loading model"),
    "page": (lambda request: httpx.Response(200, text="<html>"), "does not answer with a JSON object"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_what_cannot_be_tested_is_said_in_one_sentence(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    handler, sentence = ERRORS[name]
    assert sentence in refused(handler, capsys)


def test_other_errors_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "No such file" in refused(down, capsys, "--json", str(tmp_path / "no" / "such.json"))
    for url in ("engine", "http://engine:port"):
        assert command.run(cli.parser().parse_args(["gauntlet", "bleed", url])) == 2
        assert "http://127.0.0.1:8080" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.parser().parse_args(["gauntlet", "bleed", "http://engine", "--slots", "1"])


def test_the_key_and_the_first_model_are_sent(capsys: pytest.CaptureFixture[str]) -> None:
    seen = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append((request.headers["authorization"], json.loads(request.content or b"{}").get("model")))
        if request.url.path == "/v1/models":
            return httpx.Response(200, json={"data": [{"id": "tiny"}]})
        return httpx.Response(400, json={"error": {"message": "no"}})

    assert "400: no" in refused(answer, capsys, "--api-key", "k")
    assert seen == [("Bearer k", None), ("Bearer k", "tiny")]


class Failing(ScriptedEngine):
    """Breaks off the answer number `last`."""

    last = 30

    def chunk(self, token, top):  # noqa: ANN001, ANN201
        return {"error": {"message": "out of memory"}} if self.n_begun > self.last else super().chunk(token, top)


def test_a_failure_on_the_way_shows_what_was_found_until_then(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = cli.parser().parse_args(["gauntlet", "bleed", "http://engine"])
    assert command.run(arguments, Streaming(Failing().app)) == 2
    said = capsys.readouterr()
    assert "codewords" in said.out
    assert "until it ended early" in said.out
    assert "out of memory" in said.err


def test_a_model_that_always_says_the_same_cannot_be_tested(capsys: pytest.CaptureFixture[str]) -> None:
    class Dull(ScriptedEngine):
        def begin(self, slot, context):  # noqa: ANN001, ANN202
            super().begin(slot, "")

    arguments = cli.parser().parse_args(["gauntlet", "bleed", "http://engine", "--rounds", "1", "--max-tokens", "8"])
    assert command.run(arguments, Streaming(Dull().app)) == 2
    assert "answers every prompt alike" in capsys.readouterr().err
