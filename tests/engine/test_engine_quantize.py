"""Files in other number formats."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from gguf import GGUFReader, GGUFWriter, LlamaFileType
from hypothesis import given
from hypothesis import strategies as st

from pascal_engine.cli import main
from pascal_engine.engine import Engine, EngineOptions
from pascal_engine.errors import ModelError
from pascal_engine.gguf.parts import Parts
from pascal_engine.gguf.quants import LAYOUTS, dequantize
from pascal_engine.schedule.sequence import GenerationRequest
from pascal_engine.tools.quantize.mix import SHIPPED, Mix, Rule
from pascal_engine.tools.quantize.quantisers import TARGETS, quantiser
from pascal_engine.tools.quantize.writer import write_quantised
from tests.engine.harness import GREEDY, run
from tests.engine.synthetic import Q

# Root mean square errors on normally distributed weights of spread 1.
ERRORS = {
    Q.F32: 0,
    Q.F16: 3e-4,
    Q.BF16: 3e-3,
    Q.Q8_0: 0.007,
    Q.Q6_K: 0.025,
    Q.Q5_K: 0.045,
    Q.Q5_0: 0.06,
    Q.Q5_1: 0.05,
    Q.Q4_K: 0.09,
    Q.Q4_1: 0.1,
    Q.Q4_0: 0.11,
    Q.IQ4_NL: 0.1,
    Q.IQ4_XS: 0.1,
    Q.Q3_K: 0.2,
    Q.IQ3_S: 0.25,
    Q.IQ3_XXS: 0.3,
    Q.IQ2_S: 0.45,
    Q.Q2_K: 0.4,
}


def mix_of(tmp_path: Path, text: str) -> str:
    path = tmp_path / "my.mix"
    path.write_text(text)
    return str(path)


@pytest.fixture
def floats(tmp_path: Path) -> Path:
    """A file with keys of all kinds and matrices of several widths."""
    path = tmp_path / "floats.gguf"
    writer, rng = GGUFWriter(path, "llama"), np.random.default_rng(1)
    writer.add_uint32("general.file_type", 0)
    writer.add_uint64("a.big", 1 << 40)
    writer.add_float64("a.double", 0.1)
    writer.add_bool("a.flag", True)
    writer.add_array("a.texts", ["ä", "", "😀"])
    writer.add_array("a.floats", [0.5, 1.5])
    writer.add_custom_alignment(64)
    for name, shape in (("token_embd", (64, 256)), ("wide", (40, 512)), ("narrow", (8, 32)), ("odd", (8, 5))):
        writer.add_tensor(f"{name}.weight", rng.standard_normal(shape).astype(np.float32))
    writer.add_tensor("stack.weight", rng.standard_normal((3, 5, 256)).astype(np.float16))
    writer.add_tensor("norm.weight", rng.standard_normal(256).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_all_targets_are_bounded() -> None:
    assert set(ERRORS) == set(TARGETS) <= set(LAYOUTS)


@pytest.mark.parametrize("kind", TARGETS, ids=lambda kind: kind.name)
def test_the_error_is_the_formats_own(kind: Q) -> None:
    values = np.random.default_rng(3).standard_normal((8, 1024)).astype(np.float32)
    back = dequantize(quantiser(kind)(values), kind)
    assert float(np.sqrt(((values - back) ** 2).mean())) <= ERRORS[kind]


@pytest.mark.parametrize("kind", [Q.Q4_0, Q.Q8_0, Q.Q4_K, Q.Q5_K, Q.Q6_K], ids=lambda kind: kind.name)
@given(seed=st.integers(0, 2**32), spread=st.floats(1e-2, 1e2), shift=st.floats(-3, 3))
def test_whatever_the_weights_no_one_is_further_off_than_a_step_of_its_block(
    kind: Q, seed: int, spread: float, shift: float
) -> None:
    rng = np.random.default_rng(seed)
    values = (spread * (rng.standard_normal((2, 512)) + shift)).astype(np.float32)
    back = dequantize(quantiser(kind)(values), kind)
    bits = {Q.Q4_0: 4, Q.Q4_K: 4, Q.Q5_K: 5, Q.Q6_K: 6, Q.Q8_0: 8}[kind]
    reach = abs(values).reshape(-1, 256).max(axis=1)
    assert (abs(values - back).reshape(-1, 256).max(axis=1) <= 3 * reach / 2 ** (bits - 1)).all()


@pytest.mark.parametrize("kind", TARGETS, ids=lambda kind: kind.name)
def test_zeros_stay_zeros(kind: Q) -> None:
    zeros = np.zeros((2, 512), np.float32)
    assert not dequantize(quantiser(kind)(zeros), kind).any()


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -1e6])
def test_weights_that_a_format_cannot_hold_are_refused(wrong: float, floats: Path, tmp_path: Path) -> None:
    values = np.zeros((2, 256), np.float32)
    values[1, 7] = wrong
    with pytest.raises(ValueError, match="cannot hold"):
        quantiser(Q.Q4_K)(values)
    if np.isfinite(wrong):
        assert float(dequantize(quantiser(Q.BF16)(values), Q.BF16)[1, 7]) == pytest.approx(wrong, rel=0.01)


def test_the_first_rule_holds_and_of_its_types_the_first_that_fits(floats: Path, tmp_path: Path) -> None:
    mix = Mix.open(mix_of(tmp_path, "output.weight = q6_k\n\n# remark\nwide* = keep\n* = Q4_K, Q8_0 # the rest"))
    types = {change.tensor.name: change.type for change in mix.plan(Parts.open(floats).tensors)}
    assert types == {
        "token_embd.weight": Q.Q6_K,  # the head too, for there is no other
        "wide.weight": Q.F32,
        "narrow.weight": Q.Q8_0,
        "odd.weight": Q.F32,
        "stack.weight": Q.Q4_K,
        "norm.weight": Q.F32,
    }


def test_what_no_rule_matches_stays(floats: Path) -> None:
    assert all(change.type == change.tensor.type for change in Mix(()).plan(Parts.open(floats).tensors))


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("* Q4_K", "not of the form"),
        ("= Q4_K", "not of the form"),
        ("* =", "not of the form"),
        ("* = Q4_K,,Q8_0", "not of the form"),
        ("* = Q9", "'Q9' is no type"),
        ("* = IQ2_XXS", "no type to quantise to"),
        ("* = keep, Q4_K", "'KEEP' is no type"),
    ],
)
def test_a_wrong_line_is_named(line: str, part: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=rf"my\.mix, line 2: .*{part}"):
        Mix.open(mix_of(tmp_path, f"* = Q8_0\n{line}\n"))


def test_a_mix_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "binary.mix").write_bytes(b"\xff\xfe\x00")
    for name in ("none.mix", str(tmp_path), str(tmp_path / "binary.mix")):
        with pytest.raises(ModelError, match="trimmed"):
            Mix.open(name)


def test_a_rule_reads_as_it_was_written() -> None:
    for line in ("*.ffn_up* = Q4_K, Q4_0", "output.weight = keep"):
        assert str(Rule.parse(line)) == line


@pytest.mark.parametrize("arch", ["llama", "qwen3next", "qwen35", "qwen35moe"])
def test_the_trimmed_mix(arch: str, synthetic: Callable[..., Path]) -> None:
    assert SHIPPED == ("trimmed",)
    mix = Mix.open("trimmed")
    assert not {Q.Q3_K, Q.Q2_K} & {kind for rule in mix.rules for kind in rule.types}
    types = {change.tensor.name: change.type for change in mix.plan(Parts.open(synthetic(arch, Q.F16)).tensors)}
    assert types["token_embd.weight"] == Q.Q6_K
    small = ("norm", "ssm_a ", "ssm_dt", "conv1d", "gate_inp")
    assert all(kind == Q.F32 for name, kind in types.items() if any(part in f"{name} " for part in small))
    for name in ("attn_k", "attn_v", "ssm_alpha", "ssm_beta", "ssm_ba"):
        assert types.get(f"blk.3.{name}.weight", types.get(f"blk.0.{name}.weight", Q.Q8_0)) == Q.Q8_0
    for name in ("ffn_up", "ffn_up_exps", "ffn_down", "attn_output"):
        assert types.get(f"blk.3.{name}.weight", Q.Q4_K) == Q.Q4_K


def test_everything_else_is_copied(floats: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.gguf"
    done: list[tuple[int, int]] = []
    source = Parts.open(floats)
    changes = Mix.open(mix_of(tmp_path, "wide* = Q5_K\nstack* = Q8_0")).plan(source.tensors)
    assert write_quantised(source, out, changes, 2, lambda *now: done.append(now)) == out.stat().st_size
    assert done[-1][0] == done[-1][1] == sum(change.n_bytes for change in changes)
    before, after = GGUFReader(floats), GGUFReader(out)
    for key, field in before.fields.items():
        if key not in ("general.alignment", "general.file_type") and not key.startswith("GGUF."):
            assert after.fields[key].types == field.types
            assert after.fields[key].contents() == field.contents()
    assert after.fields["general.quantization_version"].contents() == 2
    assert after.fields["general.file_type"].contents() == LlamaFileType.MOSTLY_Q5_K_M
    made = Parts.open(out).tensors
    assert list(made) == list(source.tensors)
    for name, tensor in source.tensors.items():
        if made[name].type == tensor.type:
            assert made[name].data.tobytes() == tensor.data.tobytes()
    assert made["stack.weight"].shape == (3, 5, 256)
    wide: npt.NDArray[np.float32] = source.tensors["wide.weight"].data.view(np.float32).reshape(40, 512)
    assert made["wide.weight"].data.tobytes() == quantiser(Q.Q5_K)(wide).tobytes()


def test_pieces_do_not_change_the_result(floats: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Parts.open(floats)
    changes = Mix.open(mix_of(tmp_path, "* = Q4_K, Q4_0")).plan(source.tensors)
    write_quantised(source, tmp_path / "whole.gguf", changes, 1, lambda done, total: None)
    monkeypatch.setattr("pascal_engine.tools.quantize.writer._PIECE", 700)
    write_quantised(source, tmp_path / "pieces.gguf", changes, 3, lambda done, total: None)
    assert (tmp_path / "whole.gguf").read_bytes() == (tmp_path / "pieces.gguf").read_bytes()


@pytest.mark.parametrize("arch", ["llama", "qwen3next", "qwen35", "qwen35moe"])
def test_the_result_loads_and_answers(
    arch: str, synthetic: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.gguf"
    assert main(["quantize", str(synthetic(arch, Q.F16)), str(out), "-t", "2"]) == 0
    said = capsys.readouterr()
    assert "output.weight = Q6_K, Q8_0" in said.out
    assert said.err == ""
    (inbox,) = run(Engine.open(out, EngineOptions(256)), GenerationRequest((1, 2, 3), 4, GREEDY, ignore_eos=True))
    assert len(inbox.tokens) == 4


def test_a_split_model_becomes_one_file(synthetic: Callable[..., Path], tmp_path: Path) -> None:
    whole = Parts.open(synthetic("llama", Q.F16))
    names = list(whole.tensors)
    halves = (names[:3], names[3:])
    for number, half in enumerate(halves):
        writer = GGUFWriter(tmp_path / f"model-0000{number + 1}-of-00002.gguf", "llama")
        writer.add_uint16("split.no", number)
        writer.add_uint16("split.count", 2)
        writer.add_int32("split.tensors.count", len(names))
        for name in half:
            tensor = whole.tensors[name]
            data = tensor.data.reshape(*tensor.shape[:-1], -1)
            writer.add_tensor(name, data.view("f2" if tensor.type == Q.F16 else "f4"))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    out = tmp_path / "out.gguf"
    assert main(["quantize", str(tmp_path / "model-00002-of-00002.gguf"), str(out)]) == 0
    made = Parts.open(out)
    assert len(made.files) == 1
    assert list(made.tensors) == names
    assert not any(key.startswith("split.") for key in made.metadata)


def test_nothing_is_overwritten_or_left_behind(
    floats: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = floats.read_bytes()
    assert main(["quantize", str(floats), str(floats)]) == 2
    assert capsys.readouterr().err == f"pascal-engine quantize: {floats} exists; delete it or choose another name.\n"
    assert floats.read_bytes() == before
    broken = tmp_path / "broken.gguf"
    writer = GGUFWriter(broken, "llama")
    writer.add_tensor("a.weight", np.full((4, 256), np.nan, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    out = tmp_path / "out.gguf"
    assert main(["quantize", str(broken), str(out)]) == 2
    assert "a.weight: it has weights that Q4_K cannot hold" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "libgguf", None)
    assert main(["quantize", str(floats), str(out)]) == 2
    assert "pip install decomp-router[quantize]" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.gguf", "floats.gguf"]


def test_a_dry_run_and_json(floats: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.gguf"
    assert main(["quantize", str(floats), str(out), "--dry-run", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["tensors"][0] == {"name": "token_embd.weight", "from": "F32", "to": "Q6_K", "bytes": 64 * 210}
    assert said["file_type"] == "MOSTLY_Q4_K_M"
    assert not out.exists()


def test_weights_quantised_twice_are_remarked_on(
    synthetic: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["quantize", str(synthetic("llama", Q.Q8_0)), str(tmp_path / "out.gguf")]) == 0
    said = capsys.readouterr().err
    assert "were quantised before (Q8_0)" in said
    assert said.count("\n") == 1
