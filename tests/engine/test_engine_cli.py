"""The command line: what it says when it cannot start, and that it serves."""

import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import NoReturn

import pytest

from pascal_engine.cli import main
from pascal_engine.engine import Engine, EngineOptions
from pascal_engine.errors import ModelError
from pascal_engine.server.options import ServerOptions


def one_sentence(text: str) -> str:
    assert text.startswith("pascal-engine: ")
    assert text.count("\n") == 1
    assert "Traceback" not in text
    return text


def test_a_model_that_cannot_be_opened_is_one_sentence_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-m", str(tmp_path / "none.gguf"), "--port", "0"]) == 2
    assert "there is no such file" in one_sentence(capsys.readouterr().err)


def test_a_port_in_use_is_one_sentence_and_exit_code_2(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["-m", str(data / "llama-tiny.gguf"), "--port", str(port)]) == 2
    assert f"cannot listen on 127.0.0.1:{port}" in one_sentence(capsys.readouterr().err)


@pytest.mark.parametrize(
    "flags",
    [
        ["--port", "x"],
        ["--port", "70000"],
        ["-np", "0"],
        ["-ctk", "q5_k"],
        ["-t", "x"],
        ["--backend", "cuda"],
        ["--cache-bytes", "2 apples"],
        ["--cache-bytes", "-1"],
        ["--cache-bytes", "GiB"],
        ["--bogus"],
        [],
    ],
)
def test_flags_that_are_wrong_are_exit_code_2(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*(["-m", "model.gguf"] if flags else []), *flags])
    assert caught.value.code == 2
    assert "pascal-engine: error: " in capsys.readouterr().err


def test_more_slots_than_context_is_exit_code_2(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-m", str(data / "llama-tiny.gguf"), "-c", "4", "-np", "8", "--port", "0"]) == 2
    assert "leaves no context for 8 slots" in one_sentence(capsys.readouterr().err)


def test_a_slot_gets_its_share_of_the_context_and_no_more_than_the_model_has(data: Path) -> None:
    sizes = {
        (ctx, slots): Engine.open(data / "llama-tiny.gguf", EngineOptions(ctx, slots)).scheduler.n_ctx
        for ctx, slots in ((0, 1), (0, 4), (1000, 3), (100_000, 2))
    }
    assert sizes == {(0, 1): 4096, (0, 4): 1024, (1000, 3): 333, (100_000, 2): 4096}


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_teaches(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([flag])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    assert "pascal-engine -m model.gguf" in text
    assert all(
        name in text
        for name in ("--ctx-size", "--parallel", "--cache-type-k", "-ctv", "--host", "--port", "--cache-bytes")
    )


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [
        (None, 2 << 30),
        ("0", 0),
        ("4096", 4096),
        ("512MiB", 512 << 20),
        ("1.5 gib", 3 << 29),
        ("2GiB", 2 << 30),
        ("1TiB", 1 << 40),
    ],
)
def test_the_budget_of_the_prefix_cache(
    text: str | None, n_bytes: int, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[EngineOptions] = []

    def refuse(path: Path, options: EngineOptions, progress: object) -> Engine:
        given.append(options)
        raise ModelError("enough.")

    monkeypatch.setattr(Engine, "open", refuse)
    flags = [] if text is None else ["--cache-bytes", text]
    assert main(["-m", str(data / "llama-tiny.gguf"), "--port", "0", *flags]) == 2
    assert [options.cache_bytes for options in given] == [n_bytes]


def test_a_wrong_size_says_what_a_right_one_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["-m", "model.gguf", "--cache-bytes", "2 apples"])
    assert "'2 apples' is not a size; give bytes, or a number with KiB, MiB, GiB or TiB" in capsys.readouterr().err


def test_it_serves_until_it_is_told_to_end(data: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pascal_engine.cli",
        "-m",
        str(data / "llama-tiny.gguf"),
        "--port",
        "0",
        "-np",
        "2",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            line = process.stderr.readline()
            assert "2 slots of 2048 tokens, listening on http://127.0.0.1:" in line
            url = line.split()[-1]
            with urllib.request.urlopen(f"{url}/health", timeout=30) as response:
                assert response.read() == b'{"status":"ok"}'
        finally:
            process.terminate()
        process.wait(30)
        assert "Traceback" not in process.stderr.read()


def test_flags_of_the_server_reach_it(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older command line once came back with a merge and knew none of them."""
    served: list[ServerOptions] = []

    def stopped(engine: Engine, options: ServerOptions) -> NoReturn:
        served.append(options)
        raise KeyboardInterrupt

    monkeypatch.setattr("pascal_engine.cli.create_app", stopped)
    assert main(["-m", str(data / "llama-tiny.gguf"), "--port", "0", "--api-key", "secret", "--metrics"]) == 0
    assert served[0].api_keys == ("secret",)
    assert served[0].metrics
