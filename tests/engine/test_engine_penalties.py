"""Penalties for repeated tokens, and DRY for repeated sequences."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pascal_engine.sampling.candidates import Candidates
from pascal_engine.sampling.params import SamplingParams
from pascal_engine.sampling.penalties import Dry, Penalties
from pascal_engine.sampling.sampler import Sampler
from tests.engine.harness import tiny_tokenizer

LOGITS = np.array([2.0, -1.0, 3.0, 0.5, 1.0, 0.0], np.float32)
PENALISED = SamplingParams(repeat_penalty=2.0, frequency_penalty=0.25, presence_penalty=0.5)
DRY = SamplingParams(dry_multiplier=1.0, dry_base=2.0, dry_allowed_length=2, dry_penalty_last_n=-1)


def after(memory: Penalties | Dry, n: int = len(LOGITS)) -> list[float]:
    candidates = Candidates(np.zeros(n, np.float32) if isinstance(memory, Dry) else LOGITS)
    memory.apply(candidates)
    return [float(score) for score in candidates.scores]


def test_penalties_look_back_over_the_prompt_and_the_answer() -> None:
    memory = Penalties(PENALISED, 64, [0, 1, 1])
    memory.accept(4)
    assert after(memory) == [2 / 2 - 0.75, -1 * 2 - 1.0, 3.0, 0.5, 1 / 2 - 0.75, 0.0]


@pytest.mark.parametrize(("size", "seen"), [(2, {1, 4}), (3, {0, 1, 4}), (-1, {0, 1, 3, 4})])
def test_penalties_see_the_last_tokens_only(size: int, seen: set[int]) -> None:
    memory = Penalties(replace(PENALISED, repeat_last_n=size), 64, [3, 0, 1])
    memory.accept(4)
    assert {token for token, (new, old) in enumerate(zip(after(memory), LOGITS, strict=True)) if new != old} == seen


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.integers(1, 12), st.integers(0, 29))
def test_penalties_count_alike_from_the_prompt_and_step_by_step(tokens: list[int], size: int, at: int) -> None:
    params = replace(PENALISED, repeat_last_n=size)
    grown = Penalties(params, 64, tokens[: at + 1])
    for token in tokens[at + 1 :]:
        grown.accept(token)
    assert after(grown) == after(Penalties(params, 64, tokens))


def test_penalties_reach_what_a_filter_before_them_left() -> None:
    params = replace(PENALISED, samplers=("top_k", "penalties", "temperature"), top_k=2, temperature=0)
    assert Sampler(params, tiny_tokenizer(), 64, [2, 2]).sample(LOGITS).token == 0
    assert Sampler(params, tiny_tokenizer(), 64, [3]).sample(LOGITS).token == 2


def test_greedy_heeds_penalties() -> None:
    sampler = Sampler(replace(PENALISED, temperature=0), tiny_tokenizer(), 64, [1])
    assert [sampler.sample(LOGITS).token for _ in range(4)] == [2, 0, 4, 2]


def plain_dry(params: SamplingParams, tokens: list[int], n_vocab: int) -> list[float]:
    """By the definition: for each token the longest end of the text that it followed before, within the last tokens and
    behind the last breaker."""
    tokenizer, allowed = tiny_tokenizer(), params.dry_allowed_length
    size = params.dry_penalty_last_n
    window = tokens if size < 0 else tokens[-size:]
    breakers = [text.encode() for text in params.dry_sequence_breakers]

    def broken(part: list[int]) -> bool:
        return any(breaker in b"".join(map(tokenizer.token_bytes, part)) for breaker in breakers)

    free = next((n for n in range(len(window)) if broken(window[len(window) - n - 1 :])), len(window))
    lowered = [0.0] * n_vocab
    for place in range(len(window) - 1):
        length = 0
        while length < min(place + 1, free) and window[place - length] == window[len(window) - 1 - length]:
            length += 1
        token = window[place + 1]
        if length >= allowed and not broken([token]):
            lowered[token] = min(lowered[token], -params.dry_multiplier * params.dry_base ** (length - allowed))
    return lowered if len(window) > allowed and free >= allowed else [0.0] * n_vocab


@settings(max_examples=150, deadline=None)
@given(
    tokens=st.lists(st.sampled_from([32, 33, 34, 35, 25]), min_size=1, max_size=24),  # A B C D :
    size=st.sampled_from([-1, 1, 3, 8]),
    allowed=st.integers(1, 3),
    breakers=st.sampled_from([(), (":",), (":", "CD"), ("BCD", "")]),
    at=st.integers(0, 23),
)
@example([32, 33, 34, 32, 33, 34, 32, 33], -1, 2, (), 3)
def test_dry_is_what_its_definition_says(
    tokens: list[int], size: int, allowed: int, breakers: tuple[str, ...], at: int
) -> None:
    params = replace(DRY, dry_penalty_last_n=size, dry_allowed_length=allowed, dry_sequence_breakers=breakers)
    memory = Dry(params, tiny_tokenizer(), 64, tokens[: at + 1])
    for token in tokens[at + 1 :]:
        memory.accept(token)
    expected = plain_dry(replace(params, dry_sequence_breakers=tuple(filter(None, breakers))), tokens, 40)
    assert after(memory, 40) == expected


def test_dry_ends_a_loop_that_greedy_would_stay_in() -> None:
    """Logits that only look at the last token go round in a circle without it."""
    follows = {32: 33, 33: 34, 34: 32}

    def walk(params: SamplingParams) -> list[int]:
        sampler, tokens = Sampler(params, tiny_tokenizer(), 64, [32]), [32]
        for _ in range(12):
            logits = np.zeros(40, np.float32)
            logits[follows.get(tokens[-1], 32)] = 3
            tokens.append(sampler.sample(logits).token)
        return tokens[1:]

    assert walk(SamplingParams(temperature=0)) == [33, 34, 32] * 4
    assert walk(replace(DRY, temperature=0)) != [33, 34, 32] * 4


def test_penalties_without_measure_stay_finite() -> None:
    huge = replace(DRY, dry_multiplier=1e300, dry_base=1e300, repeat_penalty=1e300, presence_penalty=1e300)
    sampler = Sampler(replace(huge, seed=1), tiny_tokenizer(), 64, [1, 2] * 8)
    random = Random(0)
    for _ in range(5):
        drawn = sampler.sample(np.array([random.uniform(-50, 50) for _ in range(6)], np.float32))
        assert 0 <= drawn.token < 6
