"""Confusions and reliability are counts of what was said against what is."""

from __future__ import annotations

from pathlib import Path

import pytest

from decomp_gauntlet.cases import from_json
from decomp_gauntlet.confusion import Bin, classes, lengths, reliability
from decomp_gauntlet.plots import draw
from decomp_gauntlet.report import Report
from decomp_gauntlet.score import CaseScore, score
from decomp_router.plan import Plan, Subtask

PARALLEL = from_json(
    {
        "id": "p",
        "lang": "en",
        "prompt": "one two",
        "subtasks": [{"id": "a", "quote": "one", "length": 2}, {"id": "b", "quote": "two", "length": 1}],
    }
)
SERIAL = from_json({"id": "s", "lang": "en", "prompt": "one two", "subtasks": [{"id": "a", "quote": "one two"}]})
SPLIT = Plan("one two", (Subtask("a", 0, 3, length=2), Subtask("b", 4, 7, length=3)))


def scores() -> list[CaseScore]:
    return [score(PARALLEL, SPLIT, 0.95), score(SERIAL, SPLIT, 0.92), score(SERIAL, Plan.atomic("one two"))]


def test_classes_stand_in_rows_of_labels() -> None:
    found = classes(scores())
    assert found[0] == [1, 1, 0, 0]  # atomic: one read so, one taken for parallel
    assert found[1] == [0, 1, 0, 0]


def test_lengths_are_counted_where_a_span_was_found() -> None:
    found = lengths(scores())
    assert (found[2][2], found[1][3], found[1][1]) == (1, 1, 1)
    assert sum(map(sum, found)) == 4 - 1  # no half of "one two" reaches half of it twice


def test_a_stated_chance_is_held_against_what_came_of_it() -> None:
    assert reliability(scores()) == [Bin(2, pytest.approx(0.935), 0.5)]


@pytest.mark.parametrize("suffix", [".svg", ".png"])
def test_the_picture_is_drawn(suffix: str, tmp_path: Path) -> None:
    target = tmp_path / f"report{suffix}"
    draw(Report("decomposer", tuple(scores()), {}, ()), target)
    head = target.read_bytes()[:200]
    assert (b"<?xml" in head) if suffix == ".svg" else head.startswith(b"\x89PNG")
