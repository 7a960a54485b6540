"""The bleed test on the bundled engine: it passes, and a planted mix-up of rows is found."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import pytest

from decomp_gauntlet.bleed import command
from pascal_engine.backend.batch import Batch
from pascal_engine.engine import Engine
from pascal_engine.server import create_app
from tests.decomp_gauntlet.leaky_engines import Streaming
from tests.engine.harness import DATA, open_tiny


@pytest.fixture
def engine() -> Iterator[Engine]:
    """A tiny hybrid model on three slots."""
    engine = open_tiny(DATA / "qwen35-tiny.gguf", parallel=3, ctx=1024)
    engine.worker.start()
    yield engine
    engine.worker.stop()


def judged(engine: Engine, *words: str) -> int:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    arguments = parser.parse_args(["http://engine", "--max-tokens", "16", *words])
    return command.run(arguments, Streaming(create_app(engine)))


def test_the_engine_is_clean(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    assert judged(engine) == 0
    shown = capsys.readouterr().out
    assert "clean: all 88 answers" in shown


def test_rows_one_off_in_a_batch_are_found(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    decode = Batch.decode

    def one_off(tokens: list[int], positions: list[int], rows: list[int]) -> Batch:
        return decode(tokens, positions, [*rows[1:], *rows[:1]])

    monkeypatch.setattr(Batch, "decode", one_off)
    assert judged(engine, "--rounds", "1") in (1, 3)
    assert "differ from their solo run" in capsys.readouterr().out
