"""Two reports compared case by case."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from decomp_gauntlet import command
from decomp_gauntlet.diff import RATES, compare


def report(**cases: str) -> dict[str, Any]:
    """`good`, `bad` or `dangerous` by case id."""
    return {
        "total": dict.fromkeys(RATES, 0.5) | {"recall": None},
        "cases": [
            {"id": name, "accurate": word == "good", "dangerous": ["why"] if word == "dangerous" else []}
            for name, word in cases.items()
        ],
    }


def test_changes_are_named() -> None:
    found = compare(
        report(a="good", b="bad", c="dangerous", d="bad"), report(a="dangerous", b="good", c="bad", e="bad")
    )
    assert (found.fixed, found.broken) == (("b",), ("a",))
    assert (found.newly_dangerous, found.no_longer_dangerous) == (("a",), ("c",))
    assert found.only_in_one == 2


def diff(tmp_path: Path, before: object, after: object) -> int:
    parser = argparse.ArgumentParser()
    command.add_actions(parser)
    for name, body in (("before", before), ("after", after)):
        (tmp_path / f"{name}.json").write_text(json.dumps(body))
    arguments = parser.parse_args(["diff", str(tmp_path / "before.json"), str(tmp_path / "after.json")])
    code: int = arguments.run(arguments)
    return code


def test_only_a_new_danger_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert diff(tmp_path, report(a="good"), report(a="bad")) == 0
    assert diff(tmp_path, report(a="good"), report(a="dangerous")) == 1
    assert "newly dangerous" in capsys.readouterr().out


@pytest.mark.parametrize("body", [[], {}, {"total": {}}, 3])
def test_what_is_no_report_is_named(body: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert diff(tmp_path, body, report()) == 2
    assert "before.json is no report" in capsys.readouterr().err
