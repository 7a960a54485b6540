"""Weights of every type, and files that cannot be used."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from gguf import GGUFWriter

from pascal_engine.engine import Engine, EngineOptions
from pascal_engine.errors import ModelError
from pascal_engine.gguf import ModelFile
from pascal_engine.gguf.quants import LAYOUTS
from tests.engine.synthetic import Q, random_blocks

Block = npt.NDArray[np.uint8]


def half(block: Block, at: int) -> float:
    return float(block[at : at + 2].view(np.float16)[0])


def nibble(block: Block, index: int) -> int:
    """Value `index` of 32 packed in 16 bytes: low halves first, then high halves."""
    return int(block[index % 16]) >> (4 if index >= 16 else 0) & 15


def fifth_bit(block: Block, index: int) -> int:
    return (int(block[:4].view(np.uint32)[0]) >> index & 1) << 4


def k_scales(block: Block, group: int) -> tuple[int, int]:
    """The six-bit scale and minimum of one of eight groups, packed in 12 bytes."""
    low = [int(value) for value in block]
    if group < 4:
        return low[group] & 63, low[group + 4] & 63
    scale = low[group + 4] & 15 | low[group - 4] >> 6 << 4
    return scale, low[group + 4] >> 4 | low[group] >> 6 << 4


def q4_k(block: Block, index: int) -> float:
    group = index // 32
    scale, least = k_scales(block[4:16], group)
    value = int(block[16 + group // 2 * 32 + index % 32]) >> 4 * (group % 2) & 15
    return half(block, 0) * scale * value - half(block, 2) * least


def q5_k(block: Block, index: int) -> float:
    group = index // 32
    scale, least = k_scales(block[4:16], group)
    value = int(block[48 + group // 2 * 32 + index % 32]) >> 4 * (group % 2) & 15
    value += (int(block[16 + index % 32]) >> group & 1) << 4
    return half(block, 0) * scale * value - half(block, 2) * least


def q6_k(block: Block, index: int) -> float:
    part, quarter, place = index // 128, index % 128 // 32, index % 32
    low = int(block[64 * part + 32 * (quarter % 2) + place]) >> 4 * (quarter // 2) & 15
    high = int(block[128 + 32 * part + place]) >> 2 * quarter & 3
    scale = int(block[192:208].view(np.int8)[index // 16])
    return half(block, 208) * scale * ((low | high << 4) - 32)


# One value of one block, written from the format's definition.
DECODERS: dict[Q, Callable[[Block, int], float]] = {
    Q.F32: lambda block, i: float(block.view(np.float32)[i]),
    Q.F16: lambda block, i: float(block.view(np.float16)[i]),
    Q.BF16: lambda block, i: float((block.view(np.uint16).astype(np.uint32) << 16).view(np.float32)[i]),
    Q.Q8_0: lambda block, i: half(block, 0) * int(block[2:].view(np.int8)[i]),
    Q.Q4_0: lambda block, i: half(block, 0) * (nibble(block[2:], i) - 8),
    Q.Q4_1: lambda block, i: half(block, 0) * nibble(block[4:], i) + half(block, 2),
    Q.Q5_0: lambda block, i: half(block, 0) * ((nibble(block[6:], i) | fifth_bit(block[2:], i)) - 16),
    Q.Q5_1: lambda block, i: half(block, 0) * (nibble(block[8:], i) | fifth_bit(block[4:], i)) + half(block, 2),
    Q.Q4_K: q4_k,
    Q.Q5_K: q5_k,
    Q.Q6_K: q6_k,
}


@pytest.mark.parametrize("kind", DECODERS, ids=lambda kind: kind.name)
def test_every_type_is_decoded_by_its_definition(kind: Q, tmp_path: Path) -> None:
    blocks = random_blocks(kind, (3, 256), np.random.default_rng(1))
    path = tmp_path / "one.gguf"
    writer = GGUFWriter(path, "llama")
    writer.add_tensor("x", blocks, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    raw = np.ascontiguousarray(blocks).view(np.uint8).reshape(3, -1)
    per_block = 256 if kind.name.endswith("_K") else 32
    n_bytes = raw.shape[1] // (256 // per_block)
    expected = [
        [DECODERS[kind](row[i // per_block * n_bytes :][:n_bytes], i % per_block) for i in range(256)] for row in raw
    ]
    np.testing.assert_allclose(ModelFile(path).tensor("x", 3, 256), expected, rtol=1e-6)


@pytest.mark.parametrize("arch", ["llama", "qwen3next", "qwen35", "qwen35moe"])
def test_a_model_of_all_types_opens(arch: str, synthetic: Callable[..., Path]) -> None:
    assert Engine.open(synthetic(arch, *LAYOUTS), EngineOptions(128)).info.n_parameters > 500_000


def failure(path: Path) -> str:
    with pytest.raises(ModelError) as caught:
        Engine.open(path, EngineOptions(128))
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    return message


def test_a_missing_file_and_a_directory(tmp_path: Path) -> None:
    assert "there is no such file" in failure(tmp_path / "none.gguf")
    assert "is a folder" in failure(tmp_path)


@pytest.mark.parametrize("content", [b"", b"hello", b"GGUF", b"GGUF\x03\0\0\0", b"GGUF" + b"\xff" * 200])
def test_a_file_that_is_no_gguf_or_only_its_beginning(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(content)
    assert any(part in failure(path) for part in ("not a GGUF", "damaged", "version 4294967295 is not supported"))


@pytest.mark.parametrize("share", [0.001, 0.01, 0.03, 0.3, 0.9, 0.999])
def test_a_file_cut_short(share: float, data: Path, tmp_path: Path) -> None:
    whole = (data / "llama-tiny.gguf").read_bytes()
    path = tmp_path / "cut.gguf"
    path.write_bytes(whole[: int(share * len(whole))])
    assert "damaged or cut short" in failure(path)


@pytest.mark.parametrize("seed", range(20))
def test_a_damaged_header_gives_a_model_error_or_does_no_harm(seed: int, data: Path, tmp_path: Path) -> None:
    content = bytearray((data / "llama-tiny.gguf").read_bytes())
    rng = np.random.default_rng(seed)
    for at in rng.integers(4, 400, 3):
        content[at] = rng.integers(256)
    path = tmp_path / "bad.gguf"
    path.write_bytes(content)
    with contextlib.suppress(ModelError):
        Engine.open(path, EngineOptions(128))


def test_a_message_holds_nothing_that_a_terminal_would_obey(tmp_path: Path) -> None:
    path = tmp_path / "none\x1b[31m\n.gguf"
    assert "none?[31m?.gguf: there is no such file" in failure(path)


def test_an_unknown_architecture(tmp_path: Path) -> None:
    path = tmp_path / "other.gguf"
    writer = GGUFWriter(path, "gemma9")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert "architecture 'gemma9' is not supported" in failure(path)


@pytest.mark.parametrize(
    ("found", "put", "part"),
    [
        (b"smollm", b"smallm", "pre-tokenizer 'smallm' is not supported"),
        (b"\x04\0\0\0\0\0\0\0gpt2", b"\x04\0\0\0\0\0\0\0bert", "tokenizer 'bert' is not supported"),
        (b"\xc4\xa0 t", b"\xc4\xa0 \x01", "vocabulary is damaged"),
        (b"\xc4\xa0 t", b"\xc4\xa0 \xff", "key tokenizer.ggml.merges is damaged"),
        (b"llama", b"llam\xe7", "damaged"),
        (b"{% for", b"{% fur", "chat template is damaged"),
    ],
)
def test_a_vocabulary_or_template_that_cannot_be_used(
    found: bytes, put: bytes, part: str, data: Path, tmp_path: Path
) -> None:
    content = (data / "llama-tiny.gguf").read_bytes()
    assert found in content
    path = tmp_path / "bad.gguf"
    path.write_bytes(content.replace(found, put, 1))
    assert part in failure(path)


def test_types_that_are_not_supported(data: Path, tmp_path: Path) -> None:
    content = (data / "llama-tiny.gguf").read_bytes()
    name = b"token_embd.weight"
    at = content.index(name) + len(name) + 4 + 2 * 8
    for number, part in ((19, "type IQ1_S, which is not supported"), (99, "unknown type (number 99)")):
        path = tmp_path / "type.gguf"
        path.write_bytes(content[:at] + number.to_bytes(4, "little") + content[at + 4 :])
        assert part in failure(path)


def test_a_tensor_nobody_asked_for_or_that_is_missing(data: Path, tmp_path: Path) -> None:
    content = (data / "llama-tiny.gguf").read_bytes()
    path = tmp_path / "renamed.gguf"
    path.write_bytes(content.replace(b"blk.2.ffn_down.weight", b"blk.2.ffn_dawn.weight"))
    assert "tensor blk.2.ffn_down.weight is missing" in failure(path)
    path.write_bytes(content.replace(b"llama.block_count", b"llama.block_cxunt"))
    assert "llama.block_count is missing" in failure(path)
    fewer = content.replace(b"llama.block_count\x04\0\0\0\x04", b"llama.block_count\x04\0\0\0\x03")
    assert fewer != content
    path.write_bytes(fewer.replace(b"blk.3.", b"blx.3."))
    assert "does not know (for example blx.3." in failure(path)
