"""The bleed test finds what is planted, tells rounding apart, and lets a clean engine pass."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from decomp_gauntlet.bleed import checks, command
from decomp_router import cli
from tests.decomp_gauntlet.leaky_engines import (
    Leaking,
    Mixing,
    Moody,
    Rounding,
    ScriptedEngine,
    Streaming,
    Swapping,
)

CHECKS = ["codewords", "identical", "all at once", "one by one", "around a prefill", "a third hang up", "chats"]
BARE: tuple[str, ...] = ()


class Judged:
    """A run of the command on a scripted engine."""

    def __init__(self, engine: ScriptedEngine, folder: Path, *words: str) -> None:
        report = folder / "bleed.json"
        small = ["--slots", "3", "--rounds", "1", "--max-tokens", "28", "--json", str(report)]
        arguments = cli.parser().parse_args(["gauntlet", "bleed", "http://engine/v1", *small, *words])
        self.code = command.run(arguments, Streaming(engine.app))
        self.report: dict[str, Any] = json.loads(report.read_text())
        self.checks = {check["check"]: check for check in self.report["checks"]}
        self.kinds = {finding["kind"] for check in self.checks.values() for finding in check["findings"]}


@pytest.mark.parametrize("obeys", [True, False])
@pytest.mark.parametrize("takes", [("logprobs", "return_tokens"), ("logprobs",), ("return_tokens",), BARE])
def test_a_clean_engine_passes(obeys: bool, takes: tuple[str, ...], tmp_path: Path) -> None:
    judged = Judged(ScriptedEngine(obeys=obeys, takes=takes), tmp_path)
    assert judged.code == 0
    assert list(judged.checks) == CHECKS
    assert all(check["verdict"] == "clean" and check["answers"] for check in judged.checks.values())
    for name in ("codewords", "chats"):
        check = judged.checks[name]
        assert check["codewords_kept_alone"] == (check["codewords_asked"] if obeys else 0)


def test_the_progress_bar_knows_how_much_there_is_to_do(tmp_path: Path) -> None:
    engine = ScriptedEngine()
    Judged(engine, tmp_path)
    assert engine.n_begun == sum(check.n_requests(3) for check in checks.CHECKS)


def test_a_table_says_it_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Judged(ScriptedEngine(obeys=True), tmp_path)
    shown = capsys.readouterr().out
    assert "codewords" in shown
    assert "3/3" in shown
    assert "clean: all 44 answers are those that the same requests get alone" in shown


@pytest.mark.parametrize("takes", [("logprobs",), ("return_tokens",), BARE])
@pytest.mark.parametrize("obeys", [True, False])
def test_swapped_states_are_foreign_content(obeys: bool, takes: tuple[str, ...], tmp_path: Path) -> None:
    judged = Judged(Swapping(obeys=obeys, takes=takes), tmp_path)
    assert judged.code == 1
    assert "foreign content" in judged.kinds


def test_what_the_chat_before_left_is_found_by_its_codeword(tmp_path: Path) -> None:
    judged = Judged(Leaking(obeys=True, takes=BARE), tmp_path)
    assert judged.code == 1
    assert judged.checks["chats"]["bled"]


def test_a_model_too_weak_for_codewords_shows_a_leak_by_its_log_probabilities(tmp_path: Path) -> None:
    judged = Judged(Leaking(takes=("logprobs",)), tmp_path)
    assert judged.code == 1
    assert "more than rounding" in judged.kinds
    assert judged.checks["chats"]["codewords_kept_alone"] == 0


@pytest.mark.parametrize("obeys", [True, False])
def test_one_token_of_another_slot_is_found(obeys: bool, tmp_path: Path) -> None:
    judged = Judged(Mixing(obeys=obeys), tmp_path)
    assert judged.code == 1
    assert judged.checks["all at once"]["verdict"] == "bled"


def test_identical_requests_with_several_answers_are_a_bleed(tmp_path: Path) -> None:
    judged = Judged(Moody(takes=BARE), tmp_path)
    assert judged.code == 1
    assert judged.checks["identical"]["verdict"] == "bled"
    assert "unequal to its twins" in judged.kinds


@pytest.mark.parametrize("takes", [("logprobs",), BARE])
def test_rounding_is_no_bleed(takes: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    judged = Judged(Rounding(takes=takes), tmp_path)
    assert judged.code == 3
    assert judged.kinds == {"differs from its solo run"}
    assert judged.report["verdict"] == "not row-invariant"
    shown = capsys.readouterr().out
    assert "answers differ from their solo run, none shows what belongs to another" in shown
    assert ("rounding and damage cannot be told apart" in shown) == (takes == BARE)
