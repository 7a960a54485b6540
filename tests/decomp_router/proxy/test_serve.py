"""The command `serve`: flags, what it refuses, and the engine it starts."""

from __future__ import annotations

import argparse
import socket
from pathlib import Path

import pytest

from decomp_router.proxy.engine import EngineFailed, command, wait_until_ready
from decomp_router.proxy.serve import add_arguments, run


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser.add_subparsers().add_parser("serve"))
    return parser.parse_args(["serve", *words])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "give either --upstream URL"),
        (["--upstream", "http://a", "--engine", "m.gguf"], "give either --upstream URL"),
        (["--upstream", "nonsense"], "setting upstream"),
        (["--upstream", "http://a", "--", "-c", "1"], "flags after -- are for the bundled engine"),
        (["--upstream", "http://a", "--config", "no.toml"], "there is no settings file no.toml"),
        (["--upstream", "http://a", "--config", "n" * 300], "there is no settings file"),
        (["--upstream", "http://a:99999"], "setting upstream"),
        (["--upstream", "http://a", "--host", "ä..b"], "cannot listen on ä..b"),
        (["--upstream", "http://localhost:8088"], "is the router's own address"),
        (["--engine", "m.gguf", "--", "--port", "1"], "leave out --port and --host after --"),
    ],
)
def test_what_it_refuses(words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(parsed(*words)) == 2
    said = capsys.readouterr().err
    assert said.startswith("decomp-router: ")
    assert sentence in said
    assert said.count("\n") == 1


def test_a_taken_port(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert run(parsed("--upstream", "http://a", "--port", port)) == 2
    assert f"cannot listen on 127.0.0.1:{port}" in capsys.readouterr().err


def test_flags_after_two_dashes_go_to_the_engine() -> None:
    arguments = parsed("--engine", "m.gguf", "--fanout", "auto", "--", "-c", "4096", "-ctk", "f32")
    assert arguments.engine == Path("m.gguf")
    assert arguments.engine_flags == ["-c", "4096", "-ctk", "f32"]
    assert arguments.host is None
    own = command(arguments.engine, 5, arguments.engine_flags)[1:]
    assert own == ["-m", "pascal_engine.cli", "-m", "m.gguf", "-np", "4", "--port", "5", "-c", "4096", "-ctk", "f32"]


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed("--help")
    said = capsys.readouterr().out
    assert "byte for byte" in said
    assert "--engine model.gguf -- -c 16384" in said


def test_the_engine_is_waited_for() -> None:
    health = iter([False, False, True])
    naps: list[float] = []
    wait_until_ready(lambda: next(health), lambda: None, naps.append, str)
    assert len(naps) == 2


@pytest.mark.parametrize(("words", "sentence"), [("no such file", "no such file"), ("", "exit code 3")])
def test_an_engine_that_ends_instead_is_quoted(words: str, sentence: str) -> None:
    with pytest.raises(EngineFailed, match=sentence):
        wait_until_ready(lambda: False, lambda: 3, lambda _: None, lambda: words)
