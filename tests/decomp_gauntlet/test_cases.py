"""Reading and writing labelled cases; each broken case gets one clear sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from decomp_gauntlet.cases import CaseError, dump, from_json, load

GOOD: dict[str, Any] = {
    "id": "en-0042",
    "lang": "en",
    "class": "mixed",
    "tags": ["fan-in"],
    "prompt": "Sum up A, do B, and compare. Keep each short.",
    "subtasks": [
        {"id": "a", "quote": "Sum up A", "deps": [], "length": 1},
        {"id": "b", "quote": "do B", "deps": [], "length": 2},
        {"id": "c", "quote": "compare", "deps": ["a", "b"], "length": 1},
    ],
    "clauses": [{"quote": "Keep each short.", "role": "constraint", "target": "each"}],
    "fanout_expected": True,
}


def test_a_case_survives_writing_and_reading(tmp_path: Path) -> None:
    case = from_json(GOOD)
    dump([case], tmp_path / "set.jsonl")
    assert load(tmp_path / "set.jsonl") == [case]


def test_a_quote_that_repeats_is_written_with_offsets(tmp_path: Path) -> None:
    item = {"id": "x", "lang": "en", "prompt": "now now", "subtasks": [{"id": "a", "start": 4, "end": 7}]}
    dump([from_json(item)], tmp_path / "set.jsonl")
    written = json.loads((tmp_path / "set.jsonl").read_text())
    assert written["subtasks"][0] == {"id": "a", "start": 4, "end": 7, "deps": [], "length": 1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"class": "parallel"}, "class is 'parallel', its DAG says 'mixed'"),
        ({"fanout_expected": False}, "fanout_expected is False"),
        ({"subtasks": [{"id": "a", "quote": "nowhere"}]}, "occurs 0 times"),
        ({"subtasks": [{"id": "a", "quote": "A"}, {"id": "b", "quote": "Sum up A"}]}, "overlap"),
        ({"clauses": [{"quote": "Keep each short.", "role": "constraint", "target": "z"}]}, "is none of"),
        ({"clauses": [{"quote": "Keep each short.", "role": "constraint", "target": "joint"}]}, "serialises"),
        ({"clauses": [{"quote": "Keep each short.", "role": "remark"}]}, "unknown role"),
    ],
)
def test_a_broken_case_names_file_line_and_fault(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text("\n" + json.dumps(GOOD | change) + "\n")
    with pytest.raises(CaseError, match=message) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}:2: ")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "Expecting"),
        ("{}", "field id: Field required"),
        ("[]", "should be a valid dictionary"),
        (json.dumps(GOOD | {"prompt": 5}), "field prompt: Input should be a valid string"),
        (json.dumps(GOOD | {"lang": None}), "field lang: "),
        (json.dumps(GOOD | {"context": [{"role": "user", "content": None}]}), "field context.0.content: "),
        (json.dumps(GOOD | {"prompt": "\ud800"}), "surrogates not allowed"),
    ],
)
def test_a_line_that_is_no_case_is_refused(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "set.jsonl").write_text(line)
    with pytest.raises(CaseError, match=message):
        load(tmp_path / "set.jsonl")


def test_the_older_schema_is_read(tmp_path: Path) -> None:
    old = {"id": "7", "class": "parallel", "adversarial": True, "fanout_expected": True, "prompt": "x and y"}
    (tmp_path / "old.json").write_text(json.dumps({"cases": [old]}))
    (case,) = load(tmp_path / "old.json")
    assert (case.id, case.fanout_expected, case.truth, case.tags) == ("7", True, None, ("parallel", "adversarial"))


def test_an_older_set_with_a_wrong_type_is_refused(tmp_path: Path) -> None:
    """The text "false" once counted as true."""
    old = {"id": "7", "class": "atomic", "fanout_expected": "false", "prompt": "x"}
    (tmp_path / "old.json").write_text(json.dumps({"cases": [old]}))
    with pytest.raises(CaseError, match="field fanout_expected: Input should be a valid boolean"):
        load(tmp_path / "old.json")


def test_offsets_are_code_points() -> None:
    prompt = "😀 é ask this"
    case = from_json({"id": "x", "lang": "en", "prompt": prompt, "subtasks": [{"id": "a", "quote": "ask this"}]})
    assert case.truth is not None
    assert case.truth.subtasks[0].start == 4
