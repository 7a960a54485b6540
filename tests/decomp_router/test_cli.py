"""The command line, with the shipped artefact: what people type first must work."""

from __future__ import annotations

import io
import json
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest

from decomp_router.cli import main
from decomp_router.decompose.response import SCHEMA

MIXED = (
    "Sum up what a heat pump does, do the same for a gas boiler, and tell me which one suits an old stone house. "
    "Keep each part short."
)


def decomposed(prompt: str, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    assert main(["decompose", "--json", prompt]) == 0
    body: dict[str, object] = json.loads(capsys.readouterr().out)
    jsonschema.validate(body, SCHEMA)
    return body


def test_a_mixed_prompt_is_read_as_the_readme_shows(capsys: pytest.CaptureFixture[str]) -> None:
    body = decomposed(MIXED, capsys)
    assert (body["cls"], body["maxWidth"], body["fanout"]) == ("mixed", 2, True)
    tasks = body["subtasks"]
    assert isinstance(tasks, list)
    assert [task["deps"] for task in tasks] == [[], [], ["t1", "t2"]]
    assert all(MIXED[task["start"] : task["end"]] == task["text"] for task in tasks)


@pytest.mark.parametrize(
    "prompt",
    [
        "pick a country in africa then give me its history in a nutshell",
        "Escribe un poema sobre el mar y luego tradúcelo al inglés.",
        "Compare Python and Ruby for beginners.",
        "What's the capital of Peru?",
    ],
)
def test_serial_prompts_stay_serial(prompt: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert decomposed(prompt, capsys)["fanout"] is False


def test_an_empty_prompt_holds_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    body = decomposed("", capsys)
    assert (body["subtasks"], body["maxWidth"]) == ([], 0)


def test_special_tokens_and_odd_text_stay_text(capsys: pytest.CaptureFixture[str]) -> None:
    for prompt in ("</s> <s> <pad>", "😀" * 700, "\u2028\u0085 x", "a\x00b", "…" * 50, "한국어 문장입니다."):
        decomposed(prompt, capsys)


def test_a_prompt_too_long_to_read_is_one_task(capsys: pytest.CaptureFixture[str]) -> None:
    body = decomposed("Explain the sea. " * 900, capsys)
    assert (body["cls"], body["reason"]) == ("atomic", "over 2000 tokens")


def test_the_terminal_view_draws_steps(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(MIXED))
    assert main(["decompose"]) == 0
    shown = capsys.readouterr().out
    assert "step 1 - at the same time" in shown
    assert "t3 needs t1, t2" in shown
    assert "constraint for each: Keep each part short." in shown


@pytest.mark.parametrize("words", [["--help"], ["serve", "--help"], ["gauntlet", "run", "--help"], ["demo", "--help"]])
def test_help_teaches(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0
    assert len(capsys.readouterr().out.splitlines()) > 8


def test_a_prompt_of_megabytes_is_not_even_tokenised(capsys: pytest.CaptureFixture[str]) -> None:
    assert decomposed("word " * 1_000_000, capsys)["reason"] == "over 40000 characters"


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [
        ("", "an empty prompt"),
        (" \n\t ", "an empty prompt"),
        ("a" * 200_000, "over 40000 characters"),
        ("tell me a\udcff", "half of a surrogate pair, which is no text"),
        ("\x00" * 40, "one task"),
        ("اشرح المضخة الحرارية. ما هي عاصمة بيرو؟", "mostly in a script that the network never learnt"),
        ("Объясни приливы и напиши стихотворение о ветре.", "mostly in a script that the network never learnt"),
    ],
    ids=["empty", "blank", "huge", "surrogate", "NUL bytes", "right to left", "Cyrillic"],
)
def test_bad_input_is_one_task_with_a_reason(prompt: str, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    body = decomposed(prompt, capsys)
    assert (body["fanout"], body["reason"]) == (False, reason)


def test_why_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decompose", "--explain", MIXED]) == 0
    shown = capsys.readouterr().out
    for words in ("what each part was taken for", "second needs first", "for and against a fan-out", "needed"):
        assert words in shown


def test_the_order_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decompose", "--graph", str(tmp_path / "plan.svg"), MIXED]) == 0
    root = ElementTree.parse(tmp_path / "plan.svg").getroot()
    assert [text.text for text in root.iter() if text.get("class") == "id"] == ["t1", "t2", "t3"]
    assert main(["decompose", "--graph", str(tmp_path / "none" / "plan.svg"), MIXED]) == 2
    assert "No such file" in capsys.readouterr().err
