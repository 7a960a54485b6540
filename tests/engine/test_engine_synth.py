"""Random-weight models of real shapes."""

import dataclasses
import hashlib
import os
from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFWriter

from pascal_engine.cli import main
from pascal_engine.engine import Engine, EngineOptions
from pascal_engine.errors import ModelError
from pascal_engine.gguf import ModelFile
from pascal_engine.gguf.quants import LAYOUTS, dequantize
from pascal_engine.hybrid.params import read_params
from pascal_engine.schedule.sequence import GenerationRequest
from pascal_engine.synth import SHAPES, TYPE_NAMES, Experts, Shape, tensors, write_model
from pascal_engine.synth.blocks import random_weights
from pascal_engine.synth.writer import _write_header
from tests.engine.harness import GREEDY, run
from tests.engine.synthetic import Q

SMALL = {"hidden": 256, "n_layers": 8, "n_heads": 2, "n_kv_heads": 1, "n_key_heads": 1, "n_value_heads": 2}
DENSE = Shape(architecture="qwen35", feed=256, n_vocab=600, head_dim=128, tied=True, **SMALL)
MIXED = Shape(architecture="qwen35moe", feed=Experts(8, 2, 256), n_vocab=1024, head_dim=128, **SMALL)


@pytest.mark.parametrize("kind", LAYOUTS, ids=lambda kind: kind.name)
def test_random_weights_have_the_spread_asked_for_and_no_bias(kind: Q) -> None:
    data = random_weights(kind, (4, 128, 1024), 0.02, np.random.default_rng(1))
    assert data.shape == (4, 128, LAYOUTS[kind].row_bytes(1024))
    weights = dequantize(data, kind)
    assert np.isfinite(weights).all()
    assert float(weights.std()) == pytest.approx(0.02, rel=0.03)
    assert abs(float(weights.mean())) < 0.02 * 0.03
    assert float(abs(weights).max()) < 0.02 * 8


@pytest.mark.parametrize("shape", [DENSE, MIXED], ids=lambda shape: shape.architecture)
@pytest.mark.parametrize("type_name", ["Q4_K_M", "Q8_0", "F32", "IQ3_S"])
def test_a_model_loads_and_answers(shape: Shape, type_name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    done: list[tuple[int, int]] = []
    write_model(path, "small", shape, type_name, progress=lambda now, total: done.append((now, total)))
    assert [item.name for item in tmp_path.iterdir()] == ["model.gguf"]
    file = ModelFile(path)
    planned = tensors(shape, type_name)
    assert [(found.name, found.type, found.shape) for found in file.tensors] == [
        (tensor.name, tensor.type, tensor.shape) for tensor in planned
    ]
    assert done[-1] == (file.size_bytes, file.size_bytes)
    engine = Engine.open(path, EngineOptions(256))
    assert engine.info.n_vocab == shape.n_vocab
    text = "What would you like to know? 😀\n"
    assert engine.tokenizer.decode(engine.tokenizer.encode(text)) == text
    prompt = engine.template.render([{"role": "user", "content": text}])
    ids = tuple(engine.tokenizer.encode(prompt, parse_special=True))
    assert len(ids) < len(prompt)
    (inbox,) = run(engine, GenerationRequest(ids, 4, GREEDY, ignore_eos=True))
    assert len(inbox.tokens) == 4


def test_logits_stay_finite_over_many_layers(tmp_path: Path, logits_seen: dict[tuple[int, ...], list[bytes]]) -> None:
    path = tmp_path / "deep.gguf"
    write_model(path, "deep", dataclasses.replace(MIXED, n_layers=32), "Q4_K_M")
    run(Engine.open(path, EngineOptions(256)), GenerationRequest(tuple(range(100)), 2, GREEDY))
    (seen,) = logits_seen.values()
    logits = np.frombuffer(seen[0], np.float32)
    assert np.isfinite(logits).all()
    assert 0.3 < float(logits.std()) < 3


def test_the_same_seed_gives_the_same_file(tmp_path: Path) -> None:
    digests = []
    for index, seed in enumerate((0, 0, 1)):
        path = tmp_path / f"{index}.gguf"
        write_model(path, "small", DENSE, "Q4_K_M", seed)
        digests.append(hashlib.sha256(path.read_bytes()).hexdigest())
    assert digests[0] == digests[1] != digests[2]


def test_the_mix_is_that_of_llama_cpp() -> None:
    """As in files made by llama.cpp's quantiser from models with a block for multi-token prediction."""
    types = {tensor.name: tensor.type for tensor in tensors(dataclasses.replace(DENSE, n_layers=5), "Q4_K_M")}
    assert types["token_embd.weight"] == Q.Q6_K
    finer = [layer for layer in range(5) if types[f"blk.{layer}.ffn_down.weight"] == Q.Q6_K]
    assert finer == [2, 4]
    assert [types[f"blk.{layer}.attn_qkv.weight"] for layer in (0, 1, 2, 4)] == [Q.Q4_K, Q.Q4_K, Q.Q6_K, Q.Q6_K]
    assert types["blk.3.attn_v.weight"] == Q.Q4_K
    types = {tensor.name: tensor.type for tensor in tensors(dataclasses.replace(MIXED, n_layers=9), "Q4_K_M")}
    assert (types["token_embd.weight"], types["output.weight"]) == (Q.Q4_K, Q.Q6_K)
    for name in ("ffn_down_exps", "ffn_down_shexp"):
        assert [layer for layer in range(9) if types[f"blk.{layer}.{name}.weight"] == Q.Q6_K] == [0, 3, 6, 7, 8]
    for name in ("attn_norm", "ffn_gate_inp", "ffn_gate_inp_shexp", "ssm_conv1d", "ssm_norm", "post_attention_norm"):
        assert types[f"blk.0.{name}.weight"] == Q.F32
    for name in ("ssm_alpha", "ssm_beta", "ssm_out", "attn_gate", "ffn_up_exps"):
        assert types[f"blk.0.{name}.weight"] == Q.Q4_K


@pytest.mark.parametrize(
    ("name", "parameters", "size", "state"),
    [
        ("qwen35moe-35b-a3b", 34.7e9, 21.2e9, 63e6),
        ("qwen35-27b", 26.9e9, 16.5e9, 151e6),
        ("qwen35moe-1b", 975e6, 631e6, 19e6),
    ],
)
def test_real_shapes(name: str, parameters: float, size: float, state: float) -> None:
    shape = SHAPES[name]
    planned = tensors(shape, "Q4_K_M")
    assert sum(tensor.n_elements for tensor in planned) == pytest.approx(parameters, rel=0.005)
    assert sum(tensor.n_bytes for tensor in planned) == pytest.approx(size, rel=0.005)
    n_recurrent = sum(map(shape.recurrent, range(shape.n_layers)))
    assert n_recurrent * shape.n_value_heads * shape.delta_dim**2 * 4 == pytest.approx(state, rel=0.01)
    for type_name in TYPE_NAMES:
        assert all(tensor.row_bytes for tensor in tensors(shape, type_name))  # rows are whole blocks of any type


@pytest.mark.parametrize("name", SHAPES)
def test_the_header_of_a_real_shape_describes_a_model_that_loads(name: str, tmp_path: Path) -> None:
    """Eight of its layers and few tokens, for the time it takes. No data is written: all weights are zeros that take
    no room."""
    shape, path = dataclasses.replace(SHAPES[name], n_layers=8, n_vocab=1024), tmp_path / "hollow.gguf"
    planned = tensors(shape, "Q4_K_M")
    gguf_writer = GGUFWriter(path, shape.architecture)
    _write_header(gguf_writer, name, shape, "Q4_K_M", planned)
    gguf_writer.close()
    padded = sum(-(-tensor.n_bytes // 32) * 32 for tensor in planned)
    os.truncate(path, -(-path.stat().st_size // 32) * 32 + padded)
    engine = Engine.open(path, EngineOptions(256, cache_bytes=0))
    assert engine.info.size_bytes == sum(tensor.n_bytes for tensor in planned)
    assert engine.info.n_parameters == sum(tensor.n_elements for tensor in planned)


def test_a_dry_run_tells_the_sizes_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for flags in ([], ["out.gguf"]):
        assert main(["synth", "--like", "qwen35moe-35b-a3b", "--dry-run", *flags]) == 0
        said = capsys.readouterr().out
        assert said.startswith("qwen35moe-35b-a3b as Q4_K_M: 34.66 B parameters, 21.16 GB\n")
        assert {"Q4_K", "Q6_K", "F32"} <= set(said.split())
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    for path, part in ((tmp_path / "no" / "model.gguf", "there is no such folder"), (tmp_path, "exists")):
        with pytest.raises(ModelError, match=part):
            write_model(path, "small", DENSE, "Q4_K_M")
    with pytest.raises(ModelError, match="GB are free there"):
        write_model(tmp_path / "huge.gguf", "huge", dataclasses.replace(DENSE, feed=1 << 40), "Q4_K_M")
    assert list(tmp_path.iterdir()) == []


def test_what_was_begun_is_not_left_behind(tmp_path: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_model(tmp_path / "model.gguf", "small", DENSE, "Q4_K_M", progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(SHAPES, "qwen35-27b", DENSE)
    path = tmp_path / "model.gguf"
    assert main(["synth", "--like", "qwen35-27b", "--type", "Q8_0", str(path)]) == 0
    assert f"{path}: " in (said := capsys.readouterr().out)
    assert "M parameters" in said
    assert read_params(ModelFile(path)).hidden == 256
    assert main(["synth", "--like", "qwen35-27b", str(path)]) == 2
    assert capsys.readouterr().err == f"pascal-engine synth: {path} exists; delete it or choose another name.\n"
    for flags in (["--like", "gpt"], ["--like", "qwen35-27b", "--type", "Q9"], []):
        with pytest.raises(SystemExit):
            main(["synth", *flags, str(path)])
    with pytest.raises(SystemExit):
        main(["synth", "--like", "qwen35-27b"])
    assert "give OUT, the file to write, or --dry-run" in capsys.readouterr().err
