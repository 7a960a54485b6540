"""The corpus as promised: enough prompts, serial ones in the majority, no sentence shared between splits."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from decomp_gauntlet.cases import Case, load

CORPUS = Path(__file__).parents[2] / "model/corpus"
SHARED_5_GRAMS = 3
"""Two prompts with more 5-grams in common than this share a sentence, not a turn of phrase."""


def split(name: str) -> list[Case]:
    return [case for path in sorted((CORPUS / name).glob("*.jsonl")) for case in load(path)]


TRAIN, DEV, TEST = split("train"), split("dev"), split("test")


def test_there_is_enough_of_it() -> None:
    assert len(TRAIN) >= 600
    assert len(DEV) >= 150
    assert len(TEST) >= 120
    assert {case.lang for case in TRAIN} >= {"en", "es"}


@pytest.mark.parametrize("cases", [TRAIN, DEV, TEST], ids=["train", "dev", "test"])
def test_serial_prompts_are_the_majority(cases: list[Case]) -> None:
    serial = sum(not case.fanout_expected for case in cases)
    assert serial / len(cases) >= 0.6


@pytest.mark.parametrize("cases", [TRAIN, DEV, TEST], ids=["train", "dev", "test"])
def test_no_prompt_and_no_id_occurs_twice(cases: list[Case]) -> None:
    assert not [prompt for prompt, count in Counter(case.prompt for case in cases).items() if count > 1]
    assert not [name for name, count in Counter(case.id for case in cases).items() if count > 1]


def five_grams(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[i : i + 5]) for i in range(len(words) - 4)}


@pytest.mark.parametrize(("judged", "known"), [(DEV, TRAIN), (TEST, [*TRAIN, *DEV])], ids=["dev", "test"])
def test_what_judges_shares_no_sentence_with_what_was_seen(judged: list[Case], known: list[Case]) -> None:
    index: dict[tuple[str, ...], set[str]] = {}
    for case in known:
        for gram in five_grams(case.prompt):
            index.setdefault(gram, set()).add(case.id)
    shared: Counter[tuple[str, str]] = Counter()
    for case in judged:
        for gram in five_grams(case.prompt):
            shared.update((case.id, other) for other in index.get(gram, ()))
    assert not {pair: count for pair, count in shared.items() if count > SHARED_5_GRAMS}
