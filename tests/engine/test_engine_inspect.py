"""What is said about a model file."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from gguf import GGUFWriter

from pascal_engine.backend.reference import ReferenceBackend
from pascal_engine.cli import main
from pascal_engine.gguf import ModelFile
from pascal_engine.hybrid.params import read_params
from pascal_engine.inspection import Demand, Place, Report, fits
from pascal_engine.memory import StatePools
from pascal_engine.memory.pools import KvPool
from tests.engine.synthetic import Q

GIB = 1 << 30


@pytest.mark.parametrize("arch", ["llama", "qwen3next", "qwen35", "qwen35moe"])
def test_the_demand_is_what_the_pools_take(arch: str, data: Path) -> None:
    file = ModelFile(data / f"{arch}-tiny.gguf")
    params = read_params(file)
    demand = Demand.of(file, params)
    pools = StatePools(ReferenceBackend(), params, 3, 1024).layers
    kv = sum(pool.keys.nbytes + pool.values.nbytes for pool in pools if isinstance(pool, KvPool))
    state = sum(pool.states.nbytes + pool.conv.nbytes for pool in pools if not isinstance(pool, KvPool))
    assert 3 * demand.kv(1024, "f32") == 6 * demand.kv(1024) == kv
    assert 3 * demand.state == state
    behind_trunk = 0 if arch == "llama" else 64 * 128 * 4
    assert demand.weights == file.size_bytes - behind_trunk


def test_what_fits_is_what_is_left_beside_the_weights() -> None:
    demand = Demand(weights=4 * GIB, state=GIB // 8, kv_token=GIB // 65_536)
    (small, exact, large) = fits(
        demand, [Place("small", 4 * GIB, GIB), Place("exact", 5 * GIB, GIB), Place("large", 11 * GIB, GIB)], 40_000
    )
    assert set(small.slots["f16"]) == {4096, 16_384, 40_000}
    assert set(small.slots["f16"].values()) == set(exact.slots["f32"].values()) == {0}
    assert large.slots["f16"] == {4096: 32, 16_384: 16, 40_000: 8}
    assert large.slots["f32"] == {4096: 24, 16_384: 9, 40_000: 4}


def test_a_short_context_is_the_only_one() -> None:
    (fit,) = fits(Demand(0, 1, 1), [Place("card", GIB, 0)], 1000)
    assert list(fit.slots["f16"]) == [1000]


def test_as_json(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = data / "qwen35moe-tiny.gguf"
    assert main(["inspect", "--json", str(path)]) == 0
    report = json.loads(capsys.readouterr().out)
    file = ModelFile(path)
    assert report["path"] == str(path)
    assert report["architecture"] == "qwen35moe"
    assert report["problem"] is None
    assert report["types"] == [
        {
            "type": "F32",
            "n_tensors": len(file.tensors),
            "n_parameters": file.n_parameters,
            "n_bytes": file.size_bytes,
        }
    ]
    figures = report["hyper_parameters"]
    assert (figures["n_layers"], figures["n_recurrent_layers"], figures["hidden"]) == (4, 3, 64)
    assert figures["experts"] == {"n_experts": 8, "n_used": 2, "width": 32, "shared_width": 32}
    memory = report["memory"]
    assert memory["kv_per_1k_tokens"] == {"f16": 1000 * 2 * 2 * 2 * 16, "f32": 1000 * 2 * 2 * 2 * 16 * 2}
    names = [fit["place"] for fit in report["fits"]]
    assert names[:4] == ["11 GB card", "12 GB card", "16 GB card", "24 GB card"]
    assert names[4].startswith("this machine, ")
    assert report["fits"][0]["slots"]["f16"]["4096"] > report["fits"][0]["slots"]["f32"]["4096"] > 1000


def test_as_tables(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(data / "qwen35-tiny.gguf")]) == 0
    text = capsys.readouterr().out
    for part in (
        "tiny qwen35",
        "F32",
        "32.00",
        "3 delta-net, 1 attention",
        "recurrent state of one sequence",
        "24 GB card",
    ):
        assert part in text
    assert "this machine" in text
    assert main(["inspect", str(data / "llama-tiny.gguf")]) == 0
    assert "4: 0 delta-net, 4 attention" in capsys.readouterr().out


def test_types_are_counted_and_the_largest_comes_first(synthetic: Callable[..., Path]) -> None:
    file = ModelFile(synthetic("qwen35moe", Q.Q4_K, Q.Q6_K))
    types = Report.of(file).types
    assert {count.type for count in types} == {"F32", "Q4_K", "Q5_0", "Q6_K"}
    assert [count.n_bytes for count in types] == sorted((count.n_bytes for count in types), reverse=True)
    assert sum(count.n_tensors for count in types) == len(file.tensors)
    assert sum(count.n_parameters for count in types) == file.n_parameters
    assert sum(count.n_bytes for count in types) == file.size_bytes


def test_a_model_that_cannot_be_served_is_shown_as_far_as_it_goes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "other.gguf"
    writer = GGUFWriter(path, "gemma9")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    report = Report.of(ModelFile(path))
    assert report.problem is not None
    assert main(["inspect", str(path)]) == 0
    assert "This engine cannot serve it" in " ".join(capsys.readouterr().out.split())
    assert main(["inspect", "--json", str(path)]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert "'gemma9' is not supported" in shown["problem"]
    assert shown["memory"] is shown["hyper_parameters"] is None


def test_a_file_that_cannot_be_read_is_one_sentence_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(tmp_path / "none.gguf")]) == 2
    error = capsys.readouterr().err
    assert error.startswith("pascal-engine inspect: ")
    assert error.count("\n") == 1


@pytest.mark.parametrize("command", ["inspect", "synth"])
def test_help_teaches(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([command, "--help"])
    assert caught.value.code == 0
    assert f"pascal-engine {command} " in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["--help"])
    assert f"pascal-engine {command} " in capsys.readouterr().out
