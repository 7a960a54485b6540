"""Writes the file of a shape, tensor by tensor."""

import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
from gguf import GGUFWriter, LlamaFileType

from pascal_engine.files import new_file
from pascal_engine.synth.blocks import random_weights
from pascal_engine.synth.shapes import Experts, Shape
from pascal_engine.synth.tensors import Draw, Planned, tensors
from pascal_engine.synth.vocabulary import write_vocabulary

_FILE_TYPES = {
    "Q4_K_M": LlamaFileType.MOSTLY_Q4_K_M,
    "Q8_0": LlamaFileType.MOSTLY_Q8_0,
    "F32": LlamaFileType.ALL_F32,
}
_ROOM_FOR_HEADER = 32 << 20


def write_model(
    path: Path,
    name: str,
    shape: Shape,
    type_name: str,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Writes a model of `shape` with random weights to `path`, which must not exist; the same seed gives the same file.
    `progress(done, total)` counts bytes. No more than one tensor is in memory at a time. What prevents it is a
    `ModelError`, and nothing is left behind."""
    planned = tensors(shape, type_name)
    total = sum(tensor.n_bytes for tensor in planned)
    with new_file(path, total + _ROOM_FOR_HEADER) as partial:
        _write(partial, name, shape, type_name, planned, seed, lambda done: progress(done, total))


def _write(
    path: Path,
    name: str,
    shape: Shape,
    type_name: str,
    planned: list[Planned],
    seed: int,
    progress: Callable[[int], None],
) -> None:
    writer = GGUFWriter(path, shape.architecture)
    try:
        _write_header(writer, name, shape, type_name, planned)
        done = 0
        for tensor in planned:
            writer.write_tensor_data(_draw(tensor, seed))
            done += tensor.n_bytes
            progress(done)
    finally:
        writer.close()


def _write_header(writer: GGUFWriter, name: str, shape: Shape, type_name: str, planned: list[Planned]) -> None:
    """All that stands before the tensors' data."""
    _write_keys(writer, f"{name} {type_name}, random weights", shape)
    if type_name in _FILE_TYPES:
        writer.add_file_type(_FILE_TYPES[type_name])
    for tensor in planned:
        stored = (*tensor.shape[:-1], tensor.row_bytes)
        writer.add_tensor_info(tensor.name, stored, np.dtype(np.uint8), tensor.n_bytes, tensor.type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()


def _draw(tensor: Planned, seed: int) -> npt.NDArray[np.generic]:
    rng = np.random.default_rng([seed, zlib.crc32(tensor.name.encode())])
    if tensor.draw is Draw.MATRIX:
        return random_weights(tensor.type, tensor.shape, 1 / np.sqrt(tensor.shape[-1]), rng)
    return _small(tensor.draw, tensor.shape, rng).astype(np.float32)


def _small(draw: Draw, shape: tuple[int, ...], rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Values in the ranges of trained models: decays from fast to slow, norms about one."""
    if draw is Draw.TIME_STEP:
        return rng.uniform(-4, 1, shape)
    if draw is Draw.DECAY:
        return -np.exp(rng.uniform(-5, 1, shape))
    if draw is Draw.CONV:
        return 0.5 * rng.standard_normal(shape)
    return 1 + 0.1 * rng.standard_normal(shape)


def _write_keys(writer: GGUFWriter, name: str, shape: Shape) -> None:
    arch = shape.architecture
    writer.add_type("model")
    writer.add_name(name)
    writer.add_block_count(shape.n_layers)
    writer.add_context_length(shape.context_length)
    writer.add_embedding_length(shape.hidden)
    writer.add_head_count(shape.n_heads)
    writer.add_head_count_kv(shape.n_kv_heads)
    writer.add_key_length(shape.head_dim)
    writer.add_value_length(shape.head_dim)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1e7)
    writer.add_rope_dimension_count(shape.rope_dim)
    writer.add_rope_dimension_sections([11, 11, 10, 0])
    writer.add_full_attention_interval(shape.attention_interval)
    writer.add_array(f"{arch}.attention.recurrent_layers", [shape.recurrent(i) for i in range(shape.n_layers)])
    writer.add_ssm_conv_kernel(shape.conv_kernel)
    writer.add_ssm_state_size(shape.delta_dim)
    writer.add_ssm_group_count(shape.n_key_heads)
    writer.add_ssm_time_step_rank(shape.n_value_heads)
    writer.add_ssm_inner_size(shape.n_value_heads * shape.delta_dim)
    if isinstance(shape.feed, Experts):
        writer.add_expert_count(shape.feed.n_experts)
        writer.add_expert_used_count(shape.feed.n_used)
        writer.add_expert_feed_forward_length(shape.feed.width)
        writer.add_expert_shared_feed_forward_length(shape.feed.width)
    else:
        writer.add_feed_forward_length(shape.feed)
    writer.add_quantization_version(2)
    write_vocabulary(writer, shape.n_vocab)
