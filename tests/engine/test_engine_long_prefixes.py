"""Prefixes of 4096 tokens on real arithmetic: what forks and second turns cost, and that their bits are their own."""

import math
from pathlib import Path

import pytest

from pascal_engine.backend.batch import BLOCK
from pascal_engine.engine import Engine
from pascal_engine.sampling.sampler import Choice, Sampler
from pascal_engine.schedule.sequence import Finished, GenerationRequest
from pascal_engine.synth import Experts, Shape, write_model
from tests.engine.harness import GREEDY, Inbox, Logits, open_tiny, run

LONG = 4096
PREFIX = tuple(place * place % 509 for place in range(LONG))
BRANCHES = tuple((*PREFIX, *range(10 * index, 10 * index + 20 + index)) for index in range(4))
SHAPE = Shape(
    architecture="qwen35moe",
    hidden=256,
    n_layers=4,
    n_heads=2,
    n_kv_heads=1,
    n_key_heads=1,
    n_value_heads=2,
    feed=Experts(4, 2, 256),
    n_vocab=1024,
    context_length=2 * LONG,
    head_dim=128,
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("long") / "hybrid.gguf"
    write_model(path, "hybrid", SHAPE, "Q8_0")
    return path


def request(tokens: tuple[int, ...], n: int = 3, **more: object) -> GenerationRequest:
    return GenerationRequest(tokens, n, GREEDY, ignore_eos=True, **more)  # type: ignore[arg-type]


def prefilled(*inboxes: Inbox) -> int:
    """Tokens of these prompts that were computed."""
    ends = [inbox.end for inbox in inboxes]
    assert all(isinstance(end, Finished) for end in ends)
    return sum(end.usage.prompt_n for end in ends if isinstance(end, Finished))


@pytest.mark.parametrize("slots", [4, 2, 1])
def test_four_forks_of_a_long_prefix(slots: int, path: Path, logits_seen: Logits) -> None:
    """All at once, and in turn where there are fewer slots: the prefix is computed once."""
    inboxes = run(open_tiny(path, slots, 2 * LONG), *map(request, BRANCHES))
    assert prefilled(*inboxes) <= 1.05 * (LONG + sum(len(tokens) - LONG for tokens in BRANCHES))
    forked = logits_seen.pop(BRANCHES[-1])
    run(open_tiny(path, 1, 2 * LONG), request(BRANCHES[-1], reuse=False))
    assert logits_seen[BRANCHES[-1]] == forked


def chat(engine: Engine, *texts: str) -> tuple[int, ...]:
    """The prompt of a chat whose turns are the user's and the assistant's, one after the other."""
    roles = ("user", "assistant")
    messages = [{"role": roles[index % 2], "content": text} for index, text in enumerate(texts)]
    return tuple(engine.tokenizer.encode(engine.template.render(messages), parse_special=True))


def long_text(engine: Engine) -> str:
    sentence = "People sit in front of the cafés, talk about the day and wait for the night to come. "
    return sentence * math.ceil(LONG / len(engine.tokenizer.encode(sentence)))


def test_second_turn_of_a_long_chat(path: Path, logits_seen: Logits, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model's choice is scripted, as random weights make no text whose tokens are those of its encoding."""
    engine = open_tiny(path, 1, 2 * LONG)
    question, follow_up = long_text(engine), "And what would you like to know?"
    answer = "There are many questions that a short answer cannot settle: 1, 2, 3, 10 or 2048."
    script = iter(engine.tokenizer.encode(f"{answer}<|im_end|>", parse_special=True))
    with monkeypatch.context() as patch:
        patch.setattr(Sampler, "sample", lambda self, logits: Choice(next(script), None))
        (first,) = run(engine, GenerationRequest(chat(engine, question)))
    assert first.text == answer
    assert prefilled(first) >= LONG
    turn = chat(engine, question, answer, follow_up)
    (second,) = run(engine, request(turn))
    assert prefilled(second) <= 0.02 * prefilled(first) + len(engine.tokenizer.encode(follow_up))
    cached = logits_seen.pop(turn)
    run(engine, request(turn, reuse=False))
    assert logits_seen[turn] == cached


def test_second_turn_whose_answer_comes_back_as_other_tokens(path: Path) -> None:
    """Then the answer is computed anew, but no more."""
    engine = open_tiny(path, 1, 2 * LONG)
    question = long_text(engine)
    prompt = chat(engine, question)
    (first,) = run(engine, request(prompt, 40))
    turn = chat(engine, question, first.text, "And then?")
    (second,) = run(engine, request(turn))
    assert prefilled(second) <= len(turn) - len(prompt) + BLOCK


def test_second_turn_of_exactly_the_same_tokens(path: Path) -> None:
    """Where the answer comes back as the tokens that it was, only the last of them and the new message are computed."""
    engine = open_tiny(path, 1, 2 * LONG)
    (first,) = run(engine, request(PREFIX, 40))
    (second,) = run(engine, request((*PREFIX, *first.tokens, 7, 8, 9)))
    assert prefilled(first, second) == LONG + 1 + 3


def test_an_edited_last_message_of_a_long_chat(path: Path) -> None:
    engine = open_tiny(path, 1, 2 * LONG)
    run(engine, request((*PREFIX, 5, 6, 7), marks=(LONG,)))
    (edited,) = run(engine, request((*PREFIX, 8, 9), marks=(LONG,)))
    assert prefilled(edited) == 2
