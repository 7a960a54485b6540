"""Prompts over 512 tokens: read in overlapping windows, fanned out only where all of them agree."""

from __future__ import annotations

import numpy as np
import pytest

from decomp_router.decompose.decomposer import Decomposer
from decomp_router.decompose.network import Scores
from decomp_router.decompose.reading import Reading
from decomp_router.decompose.thresholds import Thresholds
from decomp_router.decompose.tokens import BOS, EOS, WINDOW, Encoding, Ids
from decomp_router.decompose.windows import SPAN, windows
from tests.decomp_router.decompose.scripted import SURE, scores, word_spans

FIRST_ID = 10


class WordTokenizer:
    """A token a word; its id is its place in the prompt."""

    def encode(self, prompt: str, context: str = "") -> Encoding:
        spans = word_spans(prompt)
        ids = np.concatenate([[BOS], np.arange(len(spans)) + FIRST_ID, [EOS]])
        return Encoding(ids, np.zeros_like(ids), spans)


class LetterNetwork:
    """Sees each word as the letter that stands for it, whatever the window; `blind` windows see context alone."""

    def __init__(self, letters: str, blind: frozenset[int] = frozenset()) -> None:
        self._whole, self._blind = scores(letters), blind
        self.asked: list[Ids] = []

    def run(self, ids: Ids, layout: Ids) -> Scores:
        self.asked.append(ids)
        if len(self.asked) - 1 in self._blind:
            return scores("c" * (len(ids) - 2))
        inside = ids[1:-1] - FIRST_ID + 1
        rows = np.concatenate([[0], inside, [0]])
        whole = self._whole
        return Scores(whole.tags[rows], whole.parents[rows], whole.children[rows], whole.lengths[rows], SURE)


def reading(letters: str, blind: frozenset[int] = frozenset()) -> tuple[Reading, LetterNetwork]:
    network = LetterNetwork(letters, blind)
    thresholds = Thresholds(independent=0.9, joint=0.3, certainty=8.0)
    decomposer = Decomposer(network, WordTokenizer(), thresholds)  # type: ignore[arg-type]
    return decomposer.read("word " * len(letters)), network


ASKS = "B" + "t" * 9 + "." + "B" + "t" * 9 + "."
PASTED = "d" * 700


def test_every_token_is_read_and_no_window_is_too_long() -> None:
    network = LetterNetwork(ASKS + PASTED)
    encoding = WordTokenizer().encode("word " * len(ASKS + PASTED))
    found = windows(network, encoding)
    assert set(np.concatenate(network.asked)) >= set(encoding.ids)
    assert all(len(ids) <= WINDOW for ids in network.asked)
    assert (found[0].first, found[-1].end) == (0, len(encoding.spans))


@pytest.mark.parametrize("letters", [ASKS + PASTED, PASTED + ASKS], ids=["asks first", "asks last"])
def test_asks_at_one_end_of_a_long_document_fan_out(letters: str) -> None:
    assert reading(letters)[0].plan.cls == "parallel"


def test_asks_at_both_ends_run_linearly() -> None:
    found, _ = reading(ASKS + PASTED + ASKS)
    assert found.plan.cls == "atomic"
    assert "doubt" in found.reason


def test_an_ask_that_one_window_misses_is_doubt() -> None:
    """A short sub-task seen by one of two windows once passed as agreement, since most tokens were alike."""
    letters = "d" * (SPAN // 2 + 40) + ASKS + PASTED
    assert reading(letters)[0].plan.cls == "parallel"
    assert reading(letters, blind=frozenset({1}))[0].plan.cls == "atomic"


def test_an_unsure_ask_far_from_the_others_is_doubt() -> None:
    """Too unsure to stand for itself, it once counted as none, and its part of the prompt went unanswered."""
    assert reading(ASKS + PASTED + "Bt.t")[0].plan.cls == "atomic"


def test_a_joint_constraint_far_from_the_asks_serialises() -> None:
    assert reading(ASKS + PASTED + "j" * 12)[0].plan.cls == "atomic"


def test_a_short_prompt_is_read_once_and_kept() -> None:
    network = LetterNetwork(ASKS)
    decomposer = Decomposer(network, WordTokenizer(), Thresholds(0.9, 0.3, 8.0))  # type: ignore[arg-type]
    prompt = "word " * len(ASKS)
    assert decomposer.read(prompt) is decomposer.read(prompt)
    assert len(network.asked) == 1
