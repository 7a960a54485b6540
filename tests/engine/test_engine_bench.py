"""Speeds, and their tables."""

import csv
import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from pascal_engine.backend.batch import Batch
from pascal_engine.cli import main
from pascal_engine.tools.bench.tables import Batched, Single, markdown, plain
from pascal_engine.tools.bench.workload import Case, Runner, Timing
from tests.engine.harness import open_tiny

LLAMA_BENCH = ["model", "size", "params", "backend", "threads", "test", "t/s"]
BATCHED_BENCH = ["PP", "TG", "B", "N_KV", "T_PP s", "S_PP t/s", "T_TG s", "S_TG t/s", "T s", "S t/s"]


def timing(prefill_s: float, decode_s: float) -> Timing:
    return Timing(prefill_s, decode_s, np.zeros((1, 1), np.int64), np.zeros((1, 2), np.float32))


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_speeds_are_tokens_a_second() -> None:
    prefill = Single(Case(100, 0, 64), [timing(0.5, 9), timing(0.25, 9)]).fields()
    assert (prefill["avg_ns"], prefill["avg_ts"], prefill["samples_ts"]) == (375_000_000, 300, [200, 400])
    assert prefill["stddev_ts"] == pytest.approx(200 / np.sqrt(2))
    decode = Single(Case(0, 8, 64), [timing(9, 2)])
    assert decode.columns() == {"test": "tg8 @ d64", "t/s": "4.00 ± 0.00"}
    assert Single(Case(8, 0), [timing(1, 0)]).columns()["test"] == "pp8"


def test_several_sequences_count_together() -> None:
    result = Batched(Case(10, 5, parallel=4), [timing(0.5, 2), timing(1.5, 2)])
    assert list(result.columns().values()) == [
        "10",
        "5",
        "4",
        "60",
        "1.000",
        "40.00",
        "2.000",
        "10.00",
        "3.000",
        "20.00",
    ]
    assert list(result.columns()) == BATCHED_BENCH


def test_the_clock_is_read_around_the_two_phases_alone(data: Path) -> None:
    ticks = itertools.count()
    engine = open_tiny(data / "qwen35-tiny.gguf", parallel=2, ctx=256)
    found = Runner(engine, 0, lambda: float(next(ticks))).run(Case(70, 3, 10, 2))
    assert (found.prefill_s, found.decode_s, next(ticks)) == (1, 1, 4)
    assert (found.best.shape, found.logits.shape) == ((3, 2), (2, engine.info.n_vocab))


@pytest.mark.parametrize("arch", ["llama", "qwen35"])
@pytest.mark.parametrize("depth", [0, 1, 64, 100])
def test_what_is_computed_is_the_whole_sequence(arch: str, depth: int, data: Path) -> None:
    """Whatever ran before, and however many sequences there are: the digests are those of one run from nothing."""
    engine, case = open_tiny(data / f"{arch}-tiny.gguf", parallel=3, ctx=256), Case(70, 3, depth, 2)
    runner = Runner(engine, seed=5)
    runner.run(Case(30, 2, 7, 3))
    runner.warm_up(case)
    first, second = runner.run(case), runner.run(case)
    rng = np.random.default_rng(5)
    prompts = rng.integers(engine.info.n_vocab, size=(2, 70))
    answers = rng.integers(engine.info.n_vocab, size=(3, 2))
    before = np.random.default_rng([5, depth]).integers(engine.info.n_vocab, size=depth) if depth else []
    for row in (0, 1):
        engine.pools.clear(2, 256)
        for position, token in enumerate([*before, *prompts[row], *answers[:, row]]):
            logits = engine.model.forward(Batch.decode([int(token)], [position], [2]), engine.pools)
        assert first.logits[row].tobytes() == logits[0].tobytes()
        assert first.best[-1, row] == logits[0].argmax()
    assert (first.tokens_sha256, first.logits_sha256) == (second.tokens_sha256, second.logits_sha256)
    other = Runner(engine, seed=6).run(case)
    assert other.logits_sha256 != first.logits_sha256


def test_the_columns_of_llama_bench(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["-m", str(data / "qwen35-tiny.gguf"), "-p", "8,70", "-n", "3", "-d", "0,65", "-r", "2", "-t", "1"]
    assert main(["bench", *flags]) == 0
    said = capsys.readouterr()
    head, rule, *rows = said.out.splitlines()
    assert cells(head) == LLAMA_BENCH
    assert set(rule) == set("|-: ")
    tests = ["pp8", "pp70", "tg3", "pp8 @ d65", "pp70 @ d65", "tg3 @ d65"]
    assert [cells(row)[5] for row in rows] == tests
    assert all(float(cells(row)[6].split(" ± ")[0]) > 0 for row in rows)
    assert said.err == ""
    assert main(["bench", *flags, "--json", "-ctk", "f32"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(row["n_prompt"], row["n_gen"], row["n_depth"]) for row in found][2:4] == [(0, 3, 0), (8, 0, 65)]
    assert [len(row["samples_ts"]) for row in found] == [2] * 6
    assert {(row["type_k"], row["type_v"], row["n_threads"]) for row in found} == {("f32", "f16", 1)}


def test_the_columns_of_llama_batched_bench(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["-m", str(data / "qwen35moe-tiny.gguf"), "-npp", "8,9", "-ntg", "2", "-npl", "1,3", "-ctk", "f32"]
    assert main(["bench", *flags]) == 0
    head, _, *rows = capsys.readouterr().out.splitlines()
    assert cells(head) == BATCHED_BENCH
    assert [cells(row)[:4] for row in rows] == [
        ["8", "2", "1", "10"],
        ["8", "2", "3", "30"],
        ["9", "2", "1", "11"],
        ["9", "2", "3", "33"],
    ]
    assert main(["bench", *flags, "-o", "csv"]) == 0
    found = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [row["pl"] for row in found] == ["1", "3", "1", "3"]
    assert float(found[0]["speed"]) > 0
    assert len({row["logits_sha256"] for row in found}) == 4


def test_forms_of_a_table() -> None:
    rows = [{"a": "x", "long": "1"}, {"a": "yyy", "long": "22"}]
    assert markdown(rows) == "| a   | long |\n| --- | ---: |\n| x   |    1 |\n| yyy |   22 |"
    assert plain(rows) == "a    long\nx       1\nyyy    22"


def test_what_cannot_be_measured(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(data / "qwen35-tiny.gguf")
    assert main(["bench", "-m", model, "-p", "5000", "-n", "0"]) == 2
    assert capsys.readouterr().err == (
        f"pascal-engine bench: {model}: this takes 5000 tokens of context, and the model has 4096; ask for fewer.\n"
    )
    assert main(["bench", "-m", "none.gguf"]) == 2
    assert "there is no such file" in capsys.readouterr().err
    for flags, part in (
        (["-p", "0", "-n", "0"], "nothing is left to measure"),
        (["-p", "8", "-npl", "2"], "give those of one"),
        (["-p", "8,x"], "'x' is not a whole number"),
        (["-npl", "0"], "'0' is not a whole number from 1"),
        (["-ub", "8"], "unrecognized arguments"),
    ):
        with pytest.raises(SystemExit) as caught:
            main(["bench", "-m", model, *flags])
        assert caught.value.code == 2
        assert part in capsys.readouterr().err


@pytest.mark.parametrize("name", ["bench", "kld", "quantize", "ab"])
def test_help_teaches_by_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([name, "--help"])
    assert caught.value.code == 0
    said = capsys.readouterr().out
    assert said.count(f"pascal-engine {name} ") >= 4
    assert "--json" in said
