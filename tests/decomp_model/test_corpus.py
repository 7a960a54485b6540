"""The corpus as promised: enough prompts in six languages, serial ones in the majority, no sentence shared between
splits, and the judged sets as they were frozen before training."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from decomp_gauntlet.cases import Case, load
from decomp_gauntlet.sets import FOLDER, digest, shipped, stated_hashes

CORPUS = Path(__file__).parents[2] / "model/corpus"
SHARED_5_GRAMS = 3
"""Two prompts with more 5-grams in common than this share a sentence, not a turn of phrase."""
LANGUAGES = {"en": 1500, "es": 700, "fr": 150, "de": 150, "pt": 150, "it": 150}
"""Fewest training prompts of each."""


def cases_of(paths: Iterable[Path]) -> list[Case]:
    return [case for path in sorted(paths) for case in load(path)]


SPLITS = {name: cases_of((CORPUS / name).glob("*.jsonl")) for name in ("train", "dev", "calibration")}
SPLITS["test"] = cases_of([FOLDER / "test.jsonl"])
SPLITS["adversarial"] = cases_of([FOLDER / "adversarial.jsonl"])


def test_there_is_enough_of_it() -> None:
    found = Counter(case.lang for case in SPLITS["train"])
    assert sum(found.values()) >= 3000
    assert not {lang: found[lang] for lang, least in LANGUAGES.items() if found[lang] < least}
    assert sum(count for lang, count in found.items() if "-" in lang) >= 100
    assert sum(any("machine" in tag for tag in case.tags) for case in SPLITS["train"]) >= 300
    assert sum(case.can_go_wrong for case in SPLITS["calibration"]) >= 1000
    assert len(SPLITS["test"]) >= 600
    assert len(SPLITS["adversarial"]) >= 400


@pytest.mark.parametrize("split", ["calibration", "test", "adversarial"])
def test_what_judges_speaks_all_languages(split: str) -> None:
    assert {case.lang for case in SPLITS[split]} >= set(LANGUAGES)


@pytest.mark.parametrize("split", ["train", "dev", "calibration", "test", "adversarial"])
def test_serial_prompts_are_the_majority(split: str) -> None:
    serial = sum(not case.fanout_expected for case in SPLITS[split])
    assert serial / len(SPLITS[split]) >= 0.6


def test_no_prompt_and_no_id_occurs_twice() -> None:
    everything = [case for cases in SPLITS.values() for case in cases]
    assert not [prompt for prompt, count in Counter(case.prompt for case in everything).items() if count > 1]
    assert not [name for name, count in Counter(case.id for case in everything).items() if count > 1]


def five_grams(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[i : i + 5]) for i in range(len(words) - 4)}


@pytest.mark.parametrize(
    ("judged", "known"),
    [
        ("dev", ["train"]),
        ("calibration", ["train", "dev"]),
        ("test", ["train", "dev", "calibration"]),
        ("adversarial", ["train", "dev", "calibration"]),
    ],
)
def test_what_judges_shares_no_sentence_with_what_was_seen(judged: str, known: list[str]) -> None:
    index: dict[tuple[str, ...], set[str]] = {}
    for case in (case for name in known for case in SPLITS[name]):
        for gram in five_grams(case.prompt):
            index.setdefault(gram, set()).add(case.id)
    shared: Counter[tuple[str, str]] = Counter()
    for case in SPLITS[judged]:
        for gram in five_grams(case.prompt):
            shared.update((case.id, other) for other in index.get(gram, ()))
    assert not {pair: count for pair, count in shared.items() if count > SHARED_5_GRAMS}


def test_the_judged_sets_are_those_that_were_frozen() -> None:
    """A change of a label after the freeze is listed with its reason in model/MODEL_CARD.md, with the new hash here."""
    assert [path.name for path in shipped()] == ["test.jsonl", "adversarial.jsonl"]
    assert {path.name: digest(path) for path in shipped()} == stated_hashes()
