"""Headers written by hand: what is read from them, and which ones are refused."""

import struct
from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFReader, GGUFWriter

from pascal_engine.errors import ModelError
from pascal_engine.gguf import SUPPORTED_TYPES, ModelFile
from pascal_engine.gguf.header import HeaderError, read_header
from tests.engine.synthetic import Q

FORMS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


def text(content: str) -> bytes:
    return struct.pack("<Q", len(content.encode())) + content.encode()


def key(name: str, kind: int, value: bytes) -> bytes:
    return text(name) + struct.pack("<I", kind) + value


def array(kind: int, count: int, items: bytes = b"") -> bytes:
    return struct.pack("<IQ", kind, count) + items


def tensor(name: str, shape: tuple[int, ...], kind: int = 0, offset: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


def whole(keys: list[bytes], tensors: list[bytes], n_data: int = 0, version: int = 3) -> np.ndarray:
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(keys)) + b"".join(keys + tensors)
    padding = b"\0" * (-len(head) % 32)
    return np.frombuffer(head + padding + b"\1" * n_data, np.uint8)


def test_every_kind_of_value(tmp_path: Path) -> None:
    values = {
        0: 200,
        1: -3,
        2: 60000,
        3: -300,
        4: 1 << 31,
        5: -7,
        6: 0.5,
        7: True,
        10: 1 << 63,
        11: -(1 << 62),
        12: 0.1,
    }
    keys = [key(f"k{kind}", kind, struct.pack(f"<{FORMS[kind]}", value)) for kind, value in values.items()]
    keys += [
        key(f"a{kind}", 9, array(kind, 2, struct.pack(f"<2{FORMS[kind]}", value, value)))
        for kind, value in values.items()
    ]
    keys.append(key("text", 8, text("naïve 🎉")))
    keys.append(key("texts", 9, array(8, 2, text("a") + text(""))))
    keys.append(key("nested", 9, array(9, 2, array(4, 1, b"\7\0\0\0") + array(7, 2, b"\1\0"))))
    path = tmp_path / "values.gguf"
    path.write_bytes(whole(keys, []).tobytes())
    file = ModelFile(path)
    for kind, value in values.items():
        assert file.get(f"k{kind}", type(value)) == value
        assert file.get(f"a{kind}", list) == [value, value]
    assert file.get("text", str) == "naïve 🎉"
    assert file.strings("texts") == ["a", ""]
    assert file.get("nested", list) == [[7], [True, False]]
    assert file.get("absent", int) is None
    assert file.get("k0", float) == 200.0
    for wrong, kind in (("k7", int), ("k7", float), ("text", int), ("k0", bool), ("a0", str)):
        with pytest.raises(ModelError, match=f"key {wrong} is not of type {kind.__name__}"):
            file.get(wrong, kind)
    with pytest.raises(ModelError, match="not a list of texts"):
        file.strings("a0")


@pytest.mark.parametrize("arch", ["llama", "qwen3next", "qwen35", "qwen35moe"])
def test_the_header_is_that_of_the_reference_reader(arch: str, data: Path) -> None:
    path = data / f"{arch}-tiny.gguf"
    reference, header = GGUFReader(path), read_header(np.fromfile(path, np.uint8))
    assert header.version == 3
    assert set(header.metadata) == {name for name in reference.fields if not name.startswith("GGUF.")}
    file = ModelFile(path)
    for name in header.metadata:
        assert file.get(name, object) == reference.fields[name].contents()
    assert list(header.tensors) == [found.name for found in reference.tensors]
    for found, expected in zip(file.tensors, reference.tensors, strict=True):
        assert found.shape == tuple(reversed(expected.shape.tolist()))
        assert found.data.tobytes() == expected.data.tobytes()


HUGE = (1 << 40, (1 << 63) - 1, (1 << 64) - 1)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (np.frombuffer(b"GGUF", np.uint8), "cut short"),
        (np.frombuffer(b"GGML" + bytes(40), np.uint8), "not a GGUF file"),
        (whole([], [], version=1), "version 1 is not supported"),
        (whole([], [], version=3 << 24), "big-endian"),
        *((np.frombuffer(b"GGUF" + struct.pack("<IQQ", 3, n, 0), np.uint8), "cut short") for n in HUGE),
        *((np.frombuffer(b"GGUF" + struct.pack("<IQQ", 3, 0, n), np.uint8), "cut short") for n in HUGE),
        *((whole([struct.pack("<Q", n) + bytes(64)], []), "cut short") for n in HUGE),
        *((whole([key("a", 8, struct.pack("<Q", n) + bytes(64))], []), "cut short") for n in HUGE),
        *(
            (whole([key("a", 9, array(kind, n, bytes(64)))], []), "cut short")
            for n in HUGE
            for kind in (0, 4, 8, 9, 12)
        ),
        (whole([key("a", 13, bytes(64))], []), "key a is damaged"),
        (whole([key("a", 9, array(13, 1, bytes(64)))], []), "key a is damaged"),
        (whole([key("a", 9, array(9, 1) * 50 + array(0, 0))], []), "key a is damaged"),
        (whole([key("a", 0, b"\0"), key("a", 0, b"\0")], []), "key a is there twice"),
        (whole([key("general.alignment", 4, struct.pack("<I", 0))], []), "general.alignment is damaged"),
        (whole([key("general.alignment", 4, struct.pack("<I", 48))], []), "general.alignment is damaged"),
        (whole([key("general.alignment", 8, text("32"))], []), "general.alignment is damaged"),
        (whole([], [tensor("x", (4,)), tensor("x", (4,), 0, 32)], 64), "tensor x is there twice"),
        (whole([], [tensor("x", ())], 64), "tensor x has 0 dimensions"),
        (whole([], [tensor("x", (1,) * 5)], 64), "tensor x has 5 dimensions"),
        (whole([], [tensor("x", (4, 0))], 64), "tensor x is empty"),
        (whole([], [tensor("x", (1 << 63, 1 << 63))], 64), "cut short"),
        (whole([], [tensor("x", (17,))], 64), "cut short"),
        (whole([], [tensor("x", (4,), 0, 1 << 63)], 64), "does not follow"),
        (whole([], [tensor("x", (4,)), tensor("y", (4,), 0, 0)], 64), "tensor y does not follow"),
        (whole([], [tensor("x", (48,), Q.Q4_0)], 64), "rows of tensor x are no whole Q4_0 blocks"),
        (whole([], [tensor("x", (256,), Q.IQ1_S)], 64), "type IQ1_S, which is not supported"),
        (whole([], [tensor("x", (4,), Q.I32)], 64), "type I32, which is not supported"),
    ],
)
def test_headers_that_are_refused(content: np.ndarray, fault: str) -> None:
    with pytest.raises(HeaderError, match=fault):
        read_header(content)


def test_more_items_than_any_vocabulary_has_are_refused_before_they_are_read() -> None:
    n_items = 5_000_000
    for kind, size in ((0, 1), (8, 8), (9, 12)):
        content = whole([key("a", 9, array(kind, n_items, bytes(size * n_items)))], [])
        with pytest.raises(HeaderError, match="key a is damaged"):
            read_header(content)
    with pytest.raises(HeaderError, match="key a is damaged"):
        read_header(whole([key("a", 8, text("x" * (1 << 25)))], []))


def test_an_alignment_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "aligned.gguf"
    writer = GGUFWriter(path, "llama")
    writer.add_custom_alignment(8)
    values = {name: np.arange(3, dtype=np.float32) + index for index, name in enumerate("xyz")}
    for name, value in values.items():
        writer.add_tensor(name, value)
    close(writer)
    for name, value in values.items():
        np.testing.assert_array_equal(ModelFile(path).tensor(name, 3), value)


def close(writer: GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def one_tensor(path: Path, kind: Q, data: np.ndarray) -> ModelFile:
    writer = GGUFWriter(path, "llama")
    writer.add_tensor("x", data, raw_dtype=kind)
    close(writer)
    return ModelFile(path)


def test_rows_are_views_of_the_file(tmp_path: Path) -> None:
    data = np.random.default_rng(1).integers(0, 256, (3, 8, 2 * 144), dtype=np.uint8)
    data[..., 0:4] = data[..., 144:148] = 0
    file = one_tensor(tmp_path / "rows.gguf", Q.Q4_K, data)
    rows = file.rows("x", 3, 8, 512)
    assert (rows.type, rows.n_inputs, rows.n_rows) == (Q.Q4_K, 512, 8)
    np.testing.assert_array_equal(rows.data, data)
    assert not rows.data.flags.owndata
    assert not rows.data.flags.writeable
    assert np.shares_memory(rows.data, file.rows("x", 3, 8, 512).data)
    np.testing.assert_array_equal(rows.decoded(), file.tensor("x", 3, 8, 512))
    assert file.rows("x", 1, 3, 8, 512).data.shape == (1, 3, 8, 288)
    for shape in ((24, 512), (3, 8, 256), (8, 3, 512), (512,)):
        with pytest.raises(ModelError, match=r"has shape \(3, 8, 512\)"):
            file.rows("x", *shape)
    with pytest.raises(ModelError, match="tensor y is missing"):
        file.rows("y", 3, 8, 512)


def test_rows_mark_their_tensor_as_read(tmp_path: Path) -> None:
    file = one_tensor(tmp_path / "one.gguf", Q.F32, np.ones((1, 32), np.float32))
    assert file.unread() == ["x"]
    assert file.rows("x", 1, 32).data.shape == (1, 128)
    assert file.unread() == []
    np.testing.assert_array_equal(file.rows("x", 1, 32).decoded(), np.ones((1, 32)))


def test_the_supported_types() -> None:
    assert {kind.name for kind in SUPPORTED_TYPES} >= {"F32", "Q2_K", "IQ2_S", "IQ4_XS"}
    assert len(SUPPORTED_TYPES) == 20
