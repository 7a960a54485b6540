"""Models split into several files."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFWriter

from pascal_engine.engine import Engine, EngineOptions
from pascal_engine.errors import ModelError
from pascal_engine.gguf import ModelFile
from pascal_engine.gguf.header import TensorInfo, Value, read_header


def split(source: Path, folder: Path, tensors_a_part: int, first_empty: bool = False) -> list[Path]:
    """Cuts a model as llama.cpp's gguf-split does: all keys in the first part, in the others only their place."""
    header = read_header(np.fromfile(source, np.uint8))
    tensors = list(header.tensors.values())
    groups = [tensors[first : first + tensors_a_part] for first in range(0, len(tensors), tensors_a_part)]
    groups = [[], *groups] if first_empty else groups
    stem = source.stem
    paths = [folder / f"{stem}-{number:05}-of-{len(groups):05}.gguf" for number in range(1, len(groups) + 1)]
    for number, (path, group) in enumerate(zip(paths, groups, strict=True)):
        write(path, header.metadata if number == 0 else {}, group, (number, len(groups), len(tensors)))
    return paths


def write(path: Path, metadata: dict[str, Value], tensors: list[TensorInfo], place: tuple[int, int, int]) -> None:
    writer = GGUFWriter(path, str(metadata.get("general.architecture", "qwen35moe")))
    for key, value in metadata.items():
        if isinstance(value, list | np.ndarray):
            writer.add_array(key, list(value) if isinstance(value, list) else value.tolist())
        elif isinstance(value, str):
            writer.add_string(key, value) if key != "general.architecture" else None
        elif isinstance(value, float):
            writer.add_float32(key, value)
        else:
            writer.add_uint32(key, int(value))
    writer.add_uint16("split.no", place[0])
    writer.add_uint16("split.count", place[1])
    writer.add_int32("split.tensors.count", place[2])
    for tensor in tensors:
        writer.add_tensor(tensor.name, tensor.data.reshape(*tensor.shape[:-1], -1), raw_dtype=tensor.type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture
def whole(data: Path) -> Path:
    return data / "qwen35moe-tiny.gguf"


@pytest.fixture
def parts(whole: Path, tmp_path: Path) -> list[Path]:
    return split(whole, tmp_path, 30)


def failure(path: Path) -> str:
    with pytest.raises(ModelError) as caught:
        ModelFile(path)
    message = str(caught.value)
    assert message.endswith(".")
    return message


@pytest.mark.parametrize("first_empty", [False, True])
def test_any_part_opens_the_whole(first_empty: bool, whole: Path, tmp_path: Path) -> None:
    paths = split(whole, tmp_path, 30, first_empty)
    assert len(paths) >= 3
    expected = ModelFile(whole)
    for path in paths:
        file = ModelFile(path)
        assert (file.size_bytes, file.n_parameters) == (expected.size_bytes, expected.n_parameters)
        assert [tensor.name for tensor in file.tensors] == [tensor.name for tensor in expected.tensors]
        for found, original in zip(file.tensors, expected.tensors, strict=True):
            assert found.data.tobytes() == original.data.tobytes()
    assert Engine.open(paths[1], EngineOptions(128)).info.n_parameters == expected.n_parameters


def test_parts_that_are_missing(parts: list[Path]) -> None:
    parts[1].unlink()
    assert f"1 of its {len(parts)} parts are missing ({parts[1].name})" in failure(parts[0])
    parts[0].unlink()
    message = failure(parts[2])
    assert parts[0].name in message
    assert parts[1].name in message


def test_a_part_under_another_name(parts: list[Path]) -> None:
    other = parts[0].with_name("model.gguf")
    shutil.copy(parts[0], other)
    assert f"its name must end as it did when it was split, with -00001-of-{len(parts):05}.gguf" in failure(other)


def test_parts_in_the_wrong_order(parts: list[Path]) -> None:
    content = [path.read_bytes() for path in parts[:2]]
    parts[0].write_bytes(content[1])
    parts[1].write_bytes(content[0])
    assert "it is no part of the same model" in failure(parts[2])


def test_a_part_of_another_model(parts: list[Path], data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    others = split(data / "qwen35-tiny.gguf", folder, 20)
    assert len(others) >= 3
    shutil.copy(others[2], parts[2])
    assert "it is no part of the same model" in failure(parts[0])


def test_tensors_that_are_there_twice_or_lacking(parts: list[Path], whole: Path) -> None:
    tensors = list(read_header(np.fromfile(whole, np.uint8)).tensors.values())
    place = (2, len(parts), len(tensors))
    for wrong in (tensors[60:-1], [*tensors[60:-1], tensors[0]]):
        write(parts[2], {}, wrong, place)
        assert "parts do not fit together" in failure(parts[0])


def test_a_part_that_is_cut_short(parts: list[Path]) -> None:
    parts[1].write_bytes(parts[1].read_bytes()[:-200])
    assert f"{parts[1]}: the file is damaged or cut short" in failure(parts[0])


def test_a_whole_model_may_have_the_name_of_a_part(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "model-00001-of-00001.gguf"
    shutil.copy(whole, path)
    assert ModelFile(path).n_parameters == ModelFile(whole).n_parameters
