"""Choosing tokens: the chain, the draw, and what is told about probabilities."""

import json
import math
import re
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pascal_engine.engine import Engine
from pascal_engine.sampling.candidates import Candidates, best
from pascal_engine.sampling.filters import FILTERS
from pascal_engine.sampling.params import SAMPLERS, SamplingError, SamplingParams, TokenProbs, chain_of
from pascal_engine.sampling.sampler import Sampler
from pascal_engine.schedule.sequence import Delta, GenerationRequest
from tests.engine.harness import DATA, open_tiny, run, tiny_tokenizer

LOGITS = np.array([0.0, 3.0, 2.0, 2.5, -5.0, 3.0], np.float32)
OPEN = SamplingParams(temperature=1, top_k=0, top_p=1, min_p=0, seed=7)


def drawn(params: SamplingParams, n: int = 400) -> list[int]:
    sampler = Sampler(params, tiny_tokenizer(), 4096, [0])
    return [sampler.sample(LOGITS).token for _ in range(n)]


def test_greedy_takes_the_first_of_the_best() -> None:
    assert set(drawn(replace(OPEN, temperature=0))) == {1}


@pytest.mark.parametrize(
    ("change", "tokens"),
    [
        ({"top_k": 1}, {1}),
        ({"top_k": 2}, {1, 5}),
        ({"top_k": 3}, {1, 5, 3}),
        ({"top_p": 0.0}, {1}),
        ({"top_p": 0.5}, {1, 5}),
        ({"min_p": 0.5}, {1, 5, 3}),
        ({"min_p": 1.0}, {1, 5}),
        ({"temperature": 100.0}, {0, 1, 2, 3, 4, 5}),
        ({"temperature": 0.001}, {1, 5}),
    ],
)
def test_filters_keep_only_their_tokens(change: dict[str, float], tokens: set[int]) -> None:
    assert set(drawn(replace(OPEN, **change))) == tokens


@pytest.mark.parametrize("temperature", [1e-5, 1e-300, 1e-308, 5e-324])
def test_a_tiny_temperature_is_greedy(temperature: float) -> None:
    """Below 1e-307 scores once divided to infinity, and the tokens were nonsense."""
    assert set(drawn(replace(OPEN, temperature=temperature))) <= {1, 5}, "two logits share the top"


def test_draws_follow_the_probabilities() -> None:
    expected = np.exp(LOGITS) / np.exp(LOGITS).sum()
    found = np.bincount(drawn(OPEN, 4000), minlength=6) / 4000
    assert np.abs(found - expected).max() < 0.03


def test_a_seed_repeats_and_no_seed_does_not() -> None:
    assert drawn(OPEN) == drawn(OPEN)
    assert drawn(OPEN) != drawn(replace(OPEN, seed=8))
    assert drawn(replace(OPEN, seed=None)) != drawn(replace(OPEN, seed=None))


@pytest.mark.parametrize(
    ("change", "tokens"),
    [
        ({"typical_p": 0.1}, {3}),
        ({"top_n_sigma": 0.1}, {1, 5}),
        ({"top_n_sigma": 0.3}, {1, 5, 3}),
        ({"xtc_probability": 1.0, "xtc_threshold": 0.2}, {0, 2, 3, 4}),
        ({"xtc_probability": 1.0, "xtc_threshold": 0.1}, {0, 2, 4}),
        ({"xtc_probability": 1.0, "xtc_threshold": 0.51}, {0, 1, 2, 3, 4, 5}),
        ({"xtc_probability": 1.0, "min_keep": 4, "xtc_threshold": 0.1}, {0, 1, 2, 3, 4, 5}),
        ({"top_p": 0.0, "min_keep": 3}, {1, 5, 3}),
        ({"min_p": 1.0, "min_keep": 3}, {1, 5, 3}),
        ({"logit_bias": ((1, -math.inf), (5, -math.inf)), "top_k": 1}, {3}),
        ({"logit_bias": ((4, 100.0),)}, {4}),
        ({"logit_bias": ((4, 1e300),), "temperature": 0}, {4}),
        ({"temperature": 0, "dynatemp_range": 1e-3, "dynatemp_exponent": 1.0}, {1, 5}),
        ({"temperature": 0, "xtc_probability": 1.0, "xtc_threshold": 0.1}, {2}),
        ({"samplers": ("top_k", "temperature"), "top_k": 3, "temperature": 0.01}, {1, 5}),
        ({"samplers": ("temperature", "top_p"), "temperature": 0.01, "top_p": 0.4}, {1}),
        ({"samplers": ("top_p", "temperature"), "temperature": 100.0, "top_p": 0.7}, {1, 5, 3}),
        ({"samplers": (), "top_k": 1}, {0, 1, 2, 3, 4, 5}),
    ],
)
def test_every_link_keeps_only_its_tokens(change: dict[str, Any], tokens: set[int]) -> None:
    assert set(drawn(replace(OPEN, **({"temperature": 10.0} | change)), 1500)) == tokens


def test_the_dynamic_temperature_rises_with_the_entropy() -> None:
    hot = replace(OPEN, temperature=1.0, dynatemp_range=1.0, n_probs=6, post_sampling_probs=True)
    sure, unsure = np.array([9, 0, 0, 0], np.float32), np.array([0.1, 0, 0, 0], np.float32)
    for logits, temperature in ((sure, 0.00795), (unsure, 1.9986)):
        probabilities = np.exp(logits / temperature - (logits / temperature).max())
        probs = Sampler(hot, tiny_tokenizer(), 64, [0]).sample(logits).probs
        assert probs is not None
        told = {token: math.exp(logprob) for token, logprob in probs.top}
        assert told == pytest.approx(
            {i: p for i, p in enumerate(probabilities / probabilities.sum()) if i in told}, rel=1e-3
        )


@settings(max_examples=150, deadline=None)
@given(
    logits=st.lists(st.integers(-40, 40), min_size=1, max_size=60),
    top_k=st.integers(-1, 12),
    shares=st.tuples(*[st.integers(0, 20)] * 3),
    sigma=st.integers(-1, 4),
)
def test_filters_keep_what_a_plain_reading_keeps(
    logits: list[int], top_k: int, shares: tuple[int, int, int], sigma: int
) -> None:
    top_p, min_p, typical_p = (share / 20 for share in shares)
    params = SamplingParams(
        temperature=1, top_k=top_k, top_p=top_p, min_p=min_p, typical_p=typical_p, top_n_sigma=sigma / 2
    )
    scores = np.array(logits, np.float64) / 4 + np.arange(len(logits)) * 1e-4  # no two alike
    candidates = Candidates(scores)
    left = sorted(range(len(scores)), key=lambda token: -scores[token])
    for name in ("top_n_sigma", "top_k", "typ_p", "top_p", "min_p"):
        before = left
        FILTERS[name](params, candidates, Random(0))
        left = plain(name, params, scores, left)
        assert set(candidates.tokens.tolist()) == set(left), (name, before)


def plain(name: str, params: SamplingParams, scores: npt.NDArray[np.float64], left: list[int]) -> list[int]:
    """The filter `name` on tokens in falling order, word for word from its definition."""
    weights = np.exp(scores[left] - scores[left].max())
    probability = dict(zip(left, weights / weights.sum(), strict=True))
    if name == "top_n_sigma":
        bound = scores[left].max() - params.top_n_sigma * scores[left].std() if params.top_n_sigma > 0 else -math.inf
        return [token for token in left if scores[token] >= bound]
    if name == "top_k":
        return left[: params.top_k] if params.top_k > 0 else left
    if name == "min_p":
        return [token for token in left if probability[token] >= params.min_p * probability[left[0]] * (1 - 1e-12)]
    share = params.top_p if name == "top_p" else params.typical_p
    if share >= 1:
        return left
    entropy = -sum(p * math.log(p) for p in probability.values())
    distance = {token: abs(-math.log(p) - entropy) for token, p in probability.items()}
    typical = sorted(left, key=distance.__getitem__)
    assume(all(distance[b] - distance[a] > 1e-9 for a, b in pairwise(typical)))
    kept, total = [], 0.0
    for token in left if name == "top_p" else typical:
        kept.append(token)
        total += probability[token]
        if total >= share if name == "top_p" else total > share:
            break
    return sorted(kept, key=left.index)


@settings(max_examples=100, deadline=None)
@given(
    values=st.lists(st.integers(-9, 9), min_size=1, max_size=3000),
    count=st.integers(1, 300),
    banned=st.booleans(),
)
def test_the_best_are_found_without_a_sort(values: list[int], count: int, banned: bool) -> None:
    scores = np.array(values, np.float32)
    if banned:
        scores[scores < 0] = -np.inf
    assert best(scores, count).tolist() == np.argsort(-scores, kind="stable")[:count].tolist()


def test_a_draw_depends_on_seed_and_position_alone() -> None:
    whole = drawn(OPEN, 20)
    for n in range(1, 20):
        later = Sampler(OPEN, tiny_tokenizer(), 4096, [0, *whole[:n]])
        assert [later.sample(LOGITS).token for _ in range(20 - n)] == whole[n:]


def test_probabilities_by_the_logits() -> None:
    """Told as the model has them, before bias, chain and temperature."""
    params = replace(OPEN, n_probs=3, temperature=0, logit_bias=((4, 50.0),), top_k=1)
    probs = Sampler(params, tiny_tokenizer(), 64, [0]).sample(LOGITS).probs
    assert probs is not None
    expected = LOGITS - np.log(np.exp(LOGITS).sum())
    assert (probs.token, probs.logprob) == (4, pytest.approx(expected[4], abs=1e-5))
    assert [token for token, _ in probs.top] == [1, 5, 3]
    assert [logprob for _, logprob in probs.top] == pytest.approx([expected[token] for token in (1, 5, 3)], abs=1e-5)


def test_probabilities_by_what_the_chain_left() -> None:
    params = replace(OPEN, n_probs=10, post_sampling_probs=True, top_k=3, temperature=0.5)
    probs = Sampler(params, tiny_tokenizer(), 64, [0]).sample(LOGITS).probs
    assert probs is not None
    weights = np.exp(LOGITS[[1, 5, 3]] / 0.5)
    assert probs.top == tuple(
        (token, pytest.approx(math.log(p), abs=1e-5))
        for token, p in zip((1, 5, 3), weights / weights.sum(), strict=True)
    )
    assert probs.logprob == dict(probs.top)[probs.token]
    greedy = Sampler(replace(params, temperature=0), tiny_tokenizer(), 64, [0]).sample(LOGITS).probs
    assert greedy == TokenProbs(1, 0.0, ((1, 0.0),))


def test_where_every_token_is_banned_none_is_chosen() -> None:
    sampler = Sampler(replace(OPEN, logit_bias=tuple((t, -math.inf) for t in range(6))), tiny_tokenizer(), 64, [0])
    with pytest.raises(SamplingError, match="no token may follow"):
        sampler.sample(LOGITS)


def test_samplers_go_by_many_names() -> None:
    assert chain_of(["top-k", "TOPP", "nucleus", "typ", "temp", "min_p"]) == (
        "top_k",
        "top_p",
        "top_p",
        "typ_p",
        "temperature",
        "min_p",
    )
    assert chain_of("edskypmxt") == SAMPLERS
    assert SamplingParams(samplers=("top-k",)).samplers == ("top_k",)


def test_a_link_that_does_nothing_is_left_out_of_the_chain() -> None:
    assert SamplingParams(samplers=("top_k", "Adaptive_P", "temp")).samplers == ("top_k", "temperature")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"samplers": ("infill",)}, "the sampler 'infill' is not known to this engine; known are penalties, "),
        ({"samplers": "kz"}, "the sampler 'z' is not known"),
        ({"samplers": ("top_k",) * 65}, "'samplers' has more than 64 entries"),
        ({"temperature": math.nan}, "'temperature' must be a finite number"),
        ({"repeat_penalty": 0.0}, "'repeat_penalty' must be greater than 0"),
        ({"logit_bias": ((1, math.inf),)}, "each bias in 'logit_bias' must be a number"),
        ({"seed": -1}, "'seed' must not be negative"),
        ({"n_probs": -1}, "'n_probs' must not be negative"),
    ],
)
def test_fields_out_of_their_range_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(SamplingError, match=re.escape(message)):
        SamplingParams(**fields)


def test_a_bias_for_a_token_that_does_not_exist_is_refused() -> None:
    with pytest.raises(SamplingError, match="names token 512, but the model's tokens end at 511"):
        Sampler(replace(OPEN, logit_bias=((512, 1.0),)), tiny_tokenizer(), 64, [0])


def recorded() -> list[dict[str, Any]]:
    """Made by make_sampling.py with llama.cpp build 11434."""
    made: list[dict[str, Any]] = json.loads((DATA / "llama-tiny-sampling.json").read_text())
    return made


@pytest.fixture(scope="module")
def llama() -> Engine:
    return open_tiny(DATA / "llama-tiny.gguf", parallel=1)


@pytest.mark.parametrize("case", recorded(), ids=lambda case: json.dumps(case["fields"]))
def test_the_chain_leaves_what_llama_server_leaves(case: dict[str, Any], llama: Engine) -> None:
    """Up to the differences of two implementations of the model."""
    fields = {name: frozen(value) for name, value in case["fields"].items()}
    sampling = SamplingParams(n_probs=512, post_sampling_probs=True, seed=1, **fields)
    (inbox,) = run(llama, GenerationRequest(tuple(case["prompt"]), 1, sampling, reuse=False))
    (delta,) = [event for event in inbox.events if isinstance(event, Delta)]
    told = {token: math.exp(logprob) for token, logprob in delta.probs[0].top}
    assert len(told) == case["left"]
    for token, probability in case["top"]:
        assert told[token] == pytest.approx(probability, abs=2e-3)


def frozen(value: Any) -> Any:  # noqa: ANN401
    return tuple(frozen(entry) for entry in value) if isinstance(value, list) else value
