"""The gauntlet's command line: verdicts as exit codes, errors as one sentence, reports as files."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import httpx
import pytest

from decomp_gauntlet import command
from decomp_gauntlet.cases import Case, from_json
from decomp_gauntlet.solvers import OverHttp, Solved, SolverError
from decomp_router.plan import Plan, Subtask

SERIAL = {"id": "s", "lang": "en", "prompt": "one two", "subtasks": [{"id": "a", "quote": "one two"}]}


class Scripted:
    """Fans out whatever it is given."""

    name = "scripted"

    def solve(self, case: Case) -> Solved:
        return Solved(Plan(case.prompt, (Subtask("a", 0, 3), Subtask("b", 4, 7))))


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(words)


@pytest.fixture
def serial_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "set.jsonl").write_text(json.dumps(SERIAL))
    monkeypatch.setattr(command.decomposer, "load", lambda: None)
    monkeypatch.setattr(command, "InProcess", lambda _: Scripted())
    return tmp_path / "set.jsonl"


def test_one_danger_fails_the_gate(serial_set: Path) -> None:
    assert command.run(arguments(str(serial_set))) == 1
    assert command.run(arguments(str(serial_set), "--allow-dangerous", "1")) == 0


def test_reports_are_written(serial_set: Path, tmp_path: Path) -> None:
    command.run(arguments(str(serial_set.parent), "--out", str(tmp_path / "out" / "report")))
    written = json.loads((tmp_path / "out" / "report.json").read_text())
    assert written["total"]["dangerous"] == 1
    assert set(written["baselines"]) == {"never split", "always chain"}
    assert "Dangerous false parallels: 1" in (tmp_path / "out" / "report.md").read_text()


@pytest.mark.parametrize("name", ["missing.jsonl", "empty.jsonl", "broken.jsonl", "latin1.jsonl"])
def test_bad_files_exit_2_with_one_sentence(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "broken.jsonl").write_text("{")
    (tmp_path / "latin1.jsonl").write_bytes(b"\xe9")
    assert command.run(arguments(str(tmp_path / name))) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_url_is_asked_with_the_whole_conversation() -> None:
    seen = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(json.loads(request.content))
        return httpx.Response(200, json={"subtasks": [{"id": "t1", "start": 0, "end": 3, "deps": []}], "clauses": []})

    case = from_json(SERIAL | {"context": [{"role": "assistant", "content": "hi"}]})
    with httpx.Client(transport=httpx.MockTransport(answer)) as client:
        plan = OverHttp("http://engine/", client).solve(case).plan
    assert [message["content"] for message in seen[0]["messages"]] == ["hi", "one two"]
    assert plan.text(plan.subtasks[0]) == "one"


def test_a_service_that_answers_something_else_is_named() -> None:
    with (
        httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(404))) as client,
        pytest.raises(SolverError, match="http://engine/decompose gave no plan"),
    ):
        OverHttp("http://engine", client).solve(from_json(SERIAL))
