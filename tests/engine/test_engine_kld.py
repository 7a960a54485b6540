"""Divergence of one model's distributions from another's."""

import json
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pascal_engine.backend.batch import Batch
from pascal_engine.cli import main
from pascal_engine.errors import ModelError
from pascal_engine.tools.kld.divergence import Estimate, compare, log_softmax
from pascal_engine.tools.kld.saved import SavedLogits, save
from pascal_engine.tools.kld.sources import F32, Chunks, ModelSource
from tests.engine.harness import BACKENDS, BackendName, open_tiny
from tests.engine.synthetic import Q

ARCHITECTURES = ["llama", "qwen3next", "qwen35", "qwen35moe"]
WORDS = "the river runs slowly through old town and in evening lights of houses shine on water people sit in front"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text"
    path.write_text(" ".join(np.random.default_rng(0).choice(WORDS.split(), 400)))
    return path


@dataclass(frozen=True)
class Given:
    """Logits [chunks, scored, vocabulary] that a test made up."""

    chunks: Chunks
    values: F32
    reach: float = float("inf")

    @property
    def n_vocab(self) -> int:
        return int(self.values.shape[-1])

    def logits(self, chunk: int) -> Iterator[F32]:
        return (self.values[chunk, piece] for piece in self.chunks.pieces())


def given_logits(seed: int, n_ctx: int = 16, spread: float = 1) -> Given:
    rng = np.random.default_rng(seed)
    chunks = Chunks(np.random.default_rng(0).integers(0, 7, (2, n_ctx), np.int32))
    return Given(chunks, (spread * rng.standard_normal((2, chunks.n_scored, 7))).astype(np.float32))


@given(n_ctx=st.integers(8, 400))
def test_pieces_cover_the_second_half_once_and_lie_in_one_block_each(n_ctx: int) -> None:
    chunks = Chunks(np.zeros((1, n_ctx), np.int32))
    covered = [position for piece in chunks.pieces() for position in range(piece.start, piece.stop)]
    assert covered == list(range(chunks.n_scored))
    for piece in chunks.pieces():
        assert (chunks.first + piece.start) // 64 == (chunks.first + piece.stop - 1) // 64


def test_the_divergence_is_that_of_the_definition() -> None:
    a, b = given_logits(1), given_logits(2)
    found = compare(a, b)
    left, right = (np.exp(source.values) / np.exp(source.values).sum(-1, keepdims=True) for source in (a, b))
    assert found.kl == pytest.approx((left * np.log(left / right)).sum(-1).ravel(), rel=1e-5)
    assert found.same_top.tolist() == (left.argmax(-1) == right.argmax(-1)).ravel().tolist()
    following = a.chunks.tokens[:, a.chunks.first + 1 :, None]
    assert found.surprise_a == pytest.approx(-np.log(np.take_along_axis(left, following, 2)).ravel(), rel=1e-5)
    assert found.surprise_b == pytest.approx(-np.log(np.take_along_axis(right, following, 2)).ravel(), rel=1e-5)


def test_figures_and_their_errors() -> None:
    figures = compare(given_logits(1, 200), given_logits(2, 200)).to_json()
    assert figures["positions"] == 2 * 99
    assert 0 < figures["median_kl"] < figures["p99_kl"] < figures["p999_kl"] < figures["max_kl"]
    assert figures["log_ppl_ratio"] == pytest.approx(np.log(figures["ppl_b"] / figures["ppl_a"]))
    estimate = Estimate.of(np.array([1.0, 2.0, 3.0, 6.0]))
    assert (estimate.value, estimate.error) == (3, pytest.approx(np.std([1, 2, 3, 6], ddof=1) / 2))
    assert estimate.exp().error == pytest.approx(np.exp(3) * estimate.error)
    assert Estimate.of(np.array([1.0])).error == np.inf


@given(st.integers(0, 2**32), st.floats(0.1, 300))
def test_the_same_logits_diverge_by_exactly_nothing(seed: int, spread: float) -> None:
    source = given_logits(seed, spread=spread)
    found = compare(source, source)
    assert not found.kl.any()
    assert found.same_top.all()


def test_what_is_cut_off_on_one_side_is_cut_off_on_both() -> None:
    logits = np.array([[0, -5, -30]], np.float32)
    assert log_softmax(logits, 16)[0, 2] == pytest.approx(-16, abs=0.01)
    a = given_logits(1, spread=40)
    lifted = np.maximum(a.values, a.values.max(-1, keepdims=True) - 16)
    assert not compare(Given(a.chunks, lifted, 16), a).kl.any()


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_logits_that_are_no_numbers_are_an_error(wrong: float) -> None:
    source = given_logits(1)
    source.values[1, 2, 3] = wrong
    with pytest.raises(ModelError, match="no numbers"):
        compare(source, given_logits(2))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_models_logits_are_those_of_every_position(arch: str, backend: BackendName, data: Path) -> None:
    engine = open_tiny(data / f"{arch}-tiny.gguf", parallel=2, ctx=200, backend=backend)
    chunks = Chunks(np.random.default_rng(3).integers(0, 500, (2, 150), np.int32))
    source = ModelSource(engine, chunks)
    for chunk in (0, 1):
        made = np.concatenate(list(source.logits(chunk)))
        tokens = chunks.tokens[chunk].tolist()
        tokens[:1] = engine.tokenizer.encode("", add_special=True) or tokens[:1]
        engine.pools.clear(1, 200)
        for position in range(149):
            logits = engine.model.forward(Batch.decode([tokens[position]], [position], [1]), engine.pools)
            if position >= 75:
                if backend == "cpu":
                    assert made[position - 75].tobytes() == logits[0].tobytes()
                else:
                    assert made[position - 75] == pytest.approx(logits[0], abs=1e-3)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_file_against_itself_is_zero(
    arch: str, data: Path, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, logits = str(data / f"{arch}-tiny.gguf"), str(tmp_path / "logits")
    flags = ["--text", str(text), "-c", "100", "--chunks", "2"]
    assert main(["kld", model, model, *flags, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["max_kl"] == found["mean_kl"] == found["mean_kl_se"] == found["log_ppl_ratio"] == 0
    assert (found["same_top"], found["positions"]) == (1, 98)
    assert found["ppl_a"] == found["ppl_b"]
    assert main(["kld", model, *flags, "--save", logits]) == 0
    for pair in ([logits, model], [model, logits], [logits, logits]):
        assert main(["kld", *pair, "--json"]) == 0
        saved = json.loads(capsys.readouterr().out)
        assert {**saved, "a": model, "b": model} == found


def test_other_formats_of_keys_and_another_backend_are_seen(
    data: Path, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, logits = str(data / "qwen35-tiny.gguf"), str(tmp_path / "logits")
    assert main(["kld", model, "--text", str(text), "-c", "100", "--chunks", "2", "-ctk", "f32", "--save", logits]) == 0
    means = []
    for flags in (["-ctk", "f32", "--backend", "reference"], ["-ctk", "f16"]):
        assert main(["kld", logits, model, *flags, "--json"]) == 0
        means.append(json.loads(capsys.readouterr().out)["mean_kl"])
    assert all(0 < mean < 1e-2 for mean in means)


def test_the_table(
    synthetic: Callable[..., Path], text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, out = str(synthetic("qwen35", Q.F16)), str(tmp_path / "out.gguf")
    assert main(["quantize", model, out]) == 0
    capsys.readouterr()
    assert main(["kld", model, out, "--text", str(text), "-c", "64"]) == 0
    said = capsys.readouterr().out
    assert "chunks of 64 tokens" in said
    for label in ("perplexity of A", "perplexity of B", "KL divergence of B from A, mean", "99 %", "same best token"):
        assert label in said


def test_a_file_of_llama_cpp(data: Path, tmp_path: Path) -> None:
    """Its log-probabilities in 16 bits."""
    engine = open_tiny(data / "llama-tiny.gguf", parallel=1, ctx=64)
    source = ModelSource(engine, Chunks(np.arange(80, dtype=np.int32).reshape(2, 40)))
    content = [b"_logits_", struct.pack("<3i", 40, source.n_vocab, 2), source.chunks.tokens.tobytes()]
    for chunk in (0, 1):
        for row in np.concatenate(list(source.logits(chunk))):
            logs = log_softmax(row, 16)
            step = np.float32((logs.max() - logs.min()) / 65535)
            bits = np.round((logs - logs.min()) / step).astype("<u2")
            content += [struct.pack("<2f", step, logs.min()), bits.tobytes(), bytes(2 * (source.n_vocab % 2))]
    path = tmp_path / "peer"
    path.write_bytes(b"".join(content))
    found = compare(SavedLogits.open(path), source)
    assert abs(found.kl).max() < 1e-6
    assert found.same_top.all()


def test_files_that_do_not_fit(data: Path, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(data / "qwen35-tiny.gguf")
    logits = tmp_path / "logits"
    engine = open_tiny(data / "qwen35-tiny.gguf", parallel=1, ctx=64)
    save(ModelSource(engine, Chunks(np.zeros((1, 40), np.int32))), logits, lambda done, total: None)
    other = tmp_path / "other"
    save(ModelSource(engine, Chunks(np.ones((1, 40), np.int32))), other, lambda done, total: None)
    (tmp_path / "cut").write_bytes(logits.read_bytes()[:-5])
    (tmp_path / "head").write_bytes(logits.read_bytes()[:20])
    short = tmp_path / "short"
    short.write_text("too short")
    for flags, part in (
        ([model, model], "give --text FILE"),
        ([model, model, "--text", str(tmp_path / "none")], "cannot be read"),
        ([model, model, "--text", str(short)], "or a smaller -c"),
        ([model, model, "--text", str(text), "-c", "100000"], "the model has 4096"),
        ([str(logits), model, "--text", str(text)], "bring their text along"),
        ([str(logits), model, "-c", "40"], "bring their text along"),
        ([str(logits), str(other)], "different tokens"),
        ([str(tmp_path / "cut"), model], "damaged or cut short"),
        ([str(tmp_path / "head"), model], "damaged or cut short"),
        ([str(tmp_path / "none"), model, "--text", str(text)], "there is no such file"),
        ([model, "--text", str(text), "-c", "100", "--save", str(logits)], "exists"),
    ):
        assert main(["kld", *flags]) == 2
        said = capsys.readouterr()
        assert part in said.err
        assert said.err.startswith("pascal-engine kld: ")
        assert (said.err.count("\n"), said.out) == (1, "")


def test_one_of_b_and_save(capsys: pytest.CaptureFixture[str]) -> None:
    for flags in (["a"], ["a", "b", "--save", "c"]):
        with pytest.raises(SystemExit):
            main(["kld", *flags])
        assert "give B, to compare A with it, or --save OUT" in capsys.readouterr().err
