"""/v1/completions: several choices and prompts, echo, log-probabilities; the official client at its defaults."""

from collections.abc import AsyncIterator, Callable
from itertools import takewhile

import httpx
import pytest
from openai import AsyncOpenAI

from pascal_engine.engine import Engine
from pascal_engine.errors import QueueFullError
from pascal_engine.sampling.params import TokenProbs
from pascal_engine.schedule.scheduler import Scheduler
from pascal_engine.schedule.sequence import Delta, Event, GenerationRequest, Sequence
from pascal_engine.server.text_logprobs import TextLogprobs, joined
from tests.engine.harness import Json, Post, events

PATH = "/v1/completions"
SHORT: Json = {"prompt": "Hello", "max_tokens": 8, "ignore_eos": True}


@pytest.fixture
async def official(client: httpx.AsyncClient) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url="http://engine/v1", api_key="none", http_client=client) as official:
        yield official


def text(choices: list[Json], index: int) -> str:
    return "".join(choice["text"] for choice in choices if choice["index"] == index)


async def test_choices_of_a_seeded_request_are_those_of_their_seeds(post: Post) -> None:
    alone = [(await post(PATH, **SHORT, seed=seed)).json()["choices"][0]["text"] for seed in (5, 6, 7)]
    answer = (await post(PATH, **SHORT, seed=5, n=3)).json()
    assert [choice["text"] for choice in answer["choices"]] == alone
    assert len(set(alone)) == 3
    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2]
    assert answer["usage"]["completion_tokens"] == 24
    assert answer["usage"]["prompt_tokens"] == (await post(PATH, **SHORT)).json()["usage"]["prompt_tokens"]


async def test_more_prompts_than_slots_are_answered_in_order(post: Post, served: Engine) -> None:
    prompts = [served.tokenizer.encode("Hello " * n) if n % 2 else "Hello " * n for n in range(1, 6)]
    asked = {**SHORT, "seed": 3, "n": 2}
    alone = [(await post(PATH, **{**asked, "prompt": prompt})).json() for prompt in prompts]
    answer = (await post(PATH, **{**asked, "prompt": prompts})).json()
    expected = [choice["text"] for part in alone for choice in part["choices"]]
    assert [choice["text"] for choice in answer["choices"]] == expected
    assert answer["usage"]["prompt_tokens"] == sum(part["usage"]["prompt_tokens"] for part in alone)


async def test_a_stream_of_choices_adds_up(post: Post) -> None:
    asked = {**SHORT, "seed": 5, "n": 3, "echo": True}
    whole = (await post(PATH, **asked)).json()["choices"]
    chunks = events(await post(PATH, **asked, stream=True))
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    assert [text(choices, index) for index in range(3)] == [choice["text"] for choice in whole]
    assert sum(choice["finish_reason"] == "length" for choice in choices) == 3
    assert [chunk for chunk in chunks if "usage" in chunk] == chunks[-1:]
    assert chunks[-1]["usage"]["completion_tokens"] == 24


async def test_echo_puts_the_prompt_first(post: Post, served: Engine) -> None:
    plain = (await post(PATH, **SHORT, temperature=0)).json()["choices"][0]["text"]
    for prompt in ("Hello", served.tokenizer.encode("Hello")):
        answer = (await post(PATH, **{**SHORT, "prompt": prompt}, temperature=0, echo=True)).json()
        assert answer["choices"][0]["text"] == "Hello" + plain
    assert (await post(PATH, **{**SHORT, "max_tokens": 0}, echo=True)).json()["choices"][0]["text"] == "Hello"


@pytest.mark.parametrize(
    ("extra", "part"),
    [
        ({"suffix": "end"}, "'suffix' is not supported"),
        ({"best_of": 4, "n": 2}, "'best_of' other than 'n' is not supported"),
        ({"echo": True, "logprobs": 1}, "'logprobs' together with 'echo' is not supported"),
        ({"n": 0}, "'n' is wrong"),
        ({"n": 129}, "'n' is wrong"),
        ({"n": 65, "prompt": ["a", "b"]}, "more than 128 choices"),
        ({"prompt": ["a", ""]}, "the prompt is empty"),
        ({"prompt": [[1], 5]}, "'prompt"),
        ({"prompt": [["a"]]}, "'prompt"),
        ({"prompt": ["a", [5] * 128]}, "has 128 tokens"),
    ],
)
async def test_what_cannot_be_done_is_a_400(extra: Json, part: str, post: Post) -> None:
    response = await post(PATH, **{**SHORT, **extra})
    assert response.status_code == 400
    assert part in response.json()["error"]["message"]


async def test_a_full_queue_refuses_all_choices_and_frees_those_begun(
    post: Post, served: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit, begun = Scheduler.submit, []

    def second_fails(self: Scheduler, request: GenerationRequest, sink: Callable[[Event], None]) -> Sequence:
        if begun:
            raise QueueFullError("try again later")
        begun.append(submit(self, request, sink))
        return begun[0]

    with monkeypatch.context() as patch:
        patch.setattr(Scheduler, "submit", second_fails)
        assert (await post(PATH, **SHORT, n=3)).status_code == 503
    assert begun[0].cancelled
    assert (await post(PATH, **SHORT, n=3)).status_code == 200


def test_log_probabilities_are_told_with_their_text(served: Engine) -> None:
    tokenizer = served.tokenizer
    tokens = tokenizer.encode("a 🎉b")
    eos = min(tokenizer.end_of_generation)
    told = TextLogprobs(tokenizer, 1)
    parts = []
    for token, shown in zip([*tokens, eos], ["a", " ", *[""] * (len(tokens) - 4), "🎉", "b", ""], strict=True):
        probs = TokenProbs(token, -0.5, ((token, -0.5), (7, -2.0)))
        parts.append(told.take(Delta(shown, (token,), (probs,))))
    whole = joined(parts)
    assert whole["text_offset"] == [0, 1, *[2] * (len(tokens) - 3), 3]
    assert whole["tokens"][-1] == "b"
    assert str(whole["tokens"][2]).startswith("bytes:\\x")
    assert whole["token_logprobs"] == [-0.5] * len(tokens)
    assert whole["top_logprobs"][0] == {"a": -0.5}
    assert [entry["id"] for entry in whole["content"]] == tokens  # type: ignore[index]


async def test_log_probabilities_come_in_both_shapes(post: Post) -> None:
    asked = {**SHORT, "temperature": 0, "logprobs": 3}
    whole = (await post(PATH, **asked)).json()["choices"][0]
    told = whole["logprobs"]
    assert b"".join(bytes(entry["bytes"]) for entry in told["content"]).decode("utf-8", "replace") == whole["text"]
    assert [next(iter(top)) for top in told["top_logprobs"]] == told["tokens"]
    assert all(len(top) == 3 for top in told["top_logprobs"])
    assert [entry["logprob"] for entry in told["content"]] == told["token_logprobs"]
    valid = list(takewhile(lambda token: not token.startswith("bytes:"), told["tokens"]))
    assert len(valid) > 2
    assert told["text_offset"][: len(valid)] == [len("".join(valid[:at])) for at in range(len(valid))]
    chunks = events(await post(PATH, **asked, stream=True))
    parts = [chunk["choices"][0]["logprobs"] for chunk in chunks if chunk["choices"][0]["logprobs"]]
    assert joined(parts) == told
    only = (await post(PATH, **{**asked, "logprobs": 0})).json()["choices"][0]["logprobs"]
    assert only["token_logprobs"] == told["token_logprobs"]
    assert not any(only["top_logprobs"])


async def test_official_client_completes_and_streams(official: AsyncOpenAI) -> None:
    asked: Json = {"model": "any", "prompt": ["Hello", "List three"], "max_tokens": 6, "temperature": 0, "n": 2}
    whole = await official.completions.create(**asked, stream=False)
    assert [choice.index for choice in whole.choices] == [0, 1, 2, 3]
    texts = dict.fromkeys(range(4), "")
    async for chunk in await official.completions.create(**asked, stream=True):
        for choice in chunk.choices:
            texts[choice.index] += choice.text
    assert list(texts.values()) == [choice.text for choice in whole.choices]
