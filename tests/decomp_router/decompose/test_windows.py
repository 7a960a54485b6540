"""Prompts over 512 tokens: every token is read, and disagreement is noticed."""

from __future__ import annotations

import numpy as np

from decomp_router.decompose.network import Scores
from decomp_router.decompose.tokens import EOS, WINDOW, Encoding
from decomp_router.decompose.windows import STRIDE, scores_of
from tests.decomp_router.decompose.scripted import ScriptedNetwork, scores

TOKENS = 1_100


def encoding(tokens: int) -> Encoding:
    ids = np.concatenate([[0], np.arange(10, 10 + tokens), [EOS]])
    spans = np.stack([np.arange(tokens) * 2, np.arange(tokens) * 2 + 1], axis=1)
    return Encoding(ids, np.zeros_like(ids), spans)


def answers(letters: str) -> list[Scores]:
    """A consistent reader: the scores that each window of a prompt with these letters would get."""
    starts = [*range(0, TOKENS - 2 * STRIDE, STRIDE), TOKENS - 2 * STRIDE]
    whole = scores(letters)
    cut = [slice(start + 1, start + 2 * STRIDE + 1) for start in starts]

    def window(part: np.ndarray, where: slice) -> np.ndarray:
        return np.concatenate([part[:1], part[where], part[-1:]])

    return [
        Scores(*(window(p, w) for p in (whole.tags, whole.parents, whole.children, whole.lengths)), guard=float(i))
        for i, w in enumerate(cut)
    ]


LETTERS = "B" + "t" * 599 + "c" * 100 + "B" + "t" * 399


def test_a_short_prompt_is_one_pass() -> None:
    network = ScriptedNetwork(scores("Bt"))
    assert scores_of(network, encoding(2)).agree
    assert len(network.asked) == 1


def test_a_consistent_reader_is_stitched_to_what_one_pass_would_say() -> None:
    network = ScriptedNetwork(*answers(LETTERS))
    found = scores_of(network, encoding(TOKENS))
    assert found.agree
    np.testing.assert_array_equal(found.scores.tags[1:-1], scores(LETTERS).tags[1:-1])
    assert found.scores.guard == 0.0, "the least sure window decides"
    assert all(len(ids) <= WINDOW for ids, _ in network.asked)
    assert set(np.concatenate([ids for ids, _ in network.asked])) >= set(encoding(TOKENS).ids)


def test_windows_that_contradict_each_other_are_noticed() -> None:
    first, *rest = answers(LETTERS)
    other = answers("c" * TOKENS)
    assert not scores_of(ScriptedNetwork(first, *other[1:2], *rest[1:]), encoding(TOKENS)).agree
