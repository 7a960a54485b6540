"""Models of transformers as GGUF files in float32: the layout that the engine reads, whatever the model's sizes."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from gguf import GGUFWriter
from transformers import PreTrainedConfig

Get = Callable[[str], np.ndarray]

ARCHITECTURES = {
    "llama": "llama",
    "qwen3_next": "qwen3next",
    "qwen3_5_text": "qwen35",
    "qwen3_5_moe_text": "qwen35moe",
}
"""The name in GGUF files of each `model_type` of transformers."""


def write_gguf(path: Path, model: torch.nn.Module, vocabulary: Callable[[GGUFWriter], None], context: int) -> None:
    """Writes `model`; `vocabulary` adds the tokenizer's keys. What follows hybrid models is a block for multi-token
    prediction of which only one matrix is there, as a reader that skips it needs no more."""
    arch = ARCHITECTURES[model.config.model_type]
    writer = GGUFWriter(path, arch)
    write_keys(writer, arch, model.config, context)
    vocabulary(writer)
    for name, values in model_tensors(arch, model).items():
        writer.add_tensor(name, np.ascontiguousarray(values, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_keys(writer: GGUFWriter, arch: str, config: PreTrainedConfig, context: int) -> None:
    rotated = config.rope_parameters.get("partial_rotary_factor", 1)
    writer.add_name(f"tiny {arch}")
    writer.add_block_count(config.num_hidden_layers + (arch != "llama"))
    writer.add_context_length(context)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(getattr(config, "intermediate_size", 96))
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_rope_dimension_count(int(config.head_dim * rotated))
    if arch != "llama":
        writer.add_uint32(f"{arch}.nextn_predict_layers", 1)
        writer.add_full_attention_interval(config.layer_types.index("full_attention") + 1)
        writer.add_ssm_conv_kernel(config.linear_conv_kernel_dim)
        writer.add_ssm_state_size(config.linear_key_head_dim)
        writer.add_ssm_group_count(config.linear_num_key_heads)
        writer.add_ssm_time_step_rank(config.linear_num_value_heads)
        writer.add_ssm_inner_size(config.linear_num_value_heads * config.linear_value_head_dim)
    if arch in ("qwen3next", "qwen35moe"):
        writer.add_expert_count(config.num_experts)
        writer.add_expert_used_count(config.num_experts_per_tok)
        writer.add_expert_feed_forward_length(config.moe_intermediate_size)
        writer.add_expert_shared_feed_forward_length(config.shared_expert_intermediate_size)


def model_tensors(arch: str, model: torch.nn.Module) -> dict[str, np.ndarray]:
    config, state = model.config, {name: value.numpy() for name, value in model.state_dict().items()}
    shift = 0 if arch == "llama" else 1
    tensors = {"token_embd.weight": state["model.embed_tokens.weight"]}
    tensors["output_norm.weight"] = state["model.norm.weight"] + shift
    if not config.tie_word_embeddings:
        tensors["output.weight"] = state["lm_head.weight"]
    for layer in range(config.num_hidden_layers):
        prefix = f"model.layers.{layer}."
        mixer = "linear_attn" if f"{prefix}linear_attn.A_log" in state else "self_attn"
        convert = delta_tensors if mixer == "linear_attn" else attention_tensors
        block = convert(arch, config, lambda name, base=f"{prefix}{mixer}.": state[base + name])
        block |= feed_tensors(lambda name, base=f"{prefix}mlp.": state[base + name], dense=arch in ("llama", "qwen35"))
        block["attn_norm.weight"] = state[f"{prefix}input_layernorm.weight"] + shift
        after = "ffn_norm" if arch == "llama" else "post_attention_norm"
        block[f"{after}.weight"] = state[f"{prefix}post_attention_layernorm.weight"] + shift
        tensors |= {f"blk.{layer}.{name}": value for name, value in block.items()}
    if arch != "llama":
        mtp = np.ones((config.hidden_size, 2 * config.hidden_size), np.float32)
        tensors[f"blk.{config.num_hidden_layers}.nextn.eh_proj.weight"] = mtp
    return tensors


def tiled(rows: np.ndarray, n_key: int, n_value: int) -> np.ndarray:
    """Value heads in the order of qwen35 files: head p reads key head p % n_key."""
    grouped = rows.reshape(n_key, n_value // n_key, -1, *rows.shape[1:])
    return grouped.swapaxes(0, 1).reshape(rows.shape)


def interleaved(rows: np.ndarray, head_dim: int) -> np.ndarray:
    """Rope pairs side by side, as in llama files."""
    return rows.reshape(-1, 2, head_dim // 2, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)


def delta_tensors(arch: str, config: PreTrainedConfig, get: Get) -> dict[str, np.ndarray]:
    n_key, n_value, width = config.linear_num_key_heads, config.linear_num_value_heads, config.linear_key_head_dim
    key_width, value_width, group = n_key * width, n_value * width, n_value // n_key
    conv = get("conv1d.weight")[:, 0]
    tensors = {"ssm_norm.weight": get("norm.weight")}

    def order(rows: np.ndarray) -> np.ndarray:
        return rows if arch == "qwen3next" else tiled(rows, n_key, n_value)

    if arch == "qwen3next":
        mixed = get("in_proj_qkvz.weight").reshape(n_key, -1, config.hidden_size)
        ends = np.cumsum([width, width, group * width])
        q, k, v, z = (part.reshape(-1, config.hidden_size) for part in np.split(mixed, ends, axis=1))
        tensors["ssm_ba.weight"] = get("in_proj_ba.weight")
    else:
        q, k, v = np.split(get("in_proj_qkv.weight"), [key_width, 2 * key_width])
        z = get("in_proj_z.weight")
        tensors["ssm_beta.weight"] = order(get("in_proj_b.weight"))
        tensors["ssm_alpha.weight"] = order(get("in_proj_a.weight"))
    return tensors | {
        "attn_qkv.weight": np.concatenate([q, k, order(v)]),
        "attn_gate.weight": order(z),
        "ssm_conv1d.weight": np.concatenate([conv[:-value_width], order(conv[-value_width:])]),
        "ssm_dt.bias": order(get("dt_bias")),
        "ssm_a": order(-np.exp(get("A_log"))),
        "ssm_out.weight": order(get("out_proj.weight").T.copy()).T,
    }


def attention_tensors(arch: str, config: PreTrainedConfig, get: Get) -> dict[str, np.ndarray]:
    tensors = {f"attn_{part}.weight": get(f"{part}_proj.weight") for part in "qkv"}
    if arch == "llama":
        tensors |= {name: interleaved(tensors[name], config.head_dim) for name in ("attn_q.weight", "attn_k.weight")}
    tensors["attn_output.weight"] = get("o_proj.weight")
    if arch != "llama":
        tensors |= {f"attn_{part}_norm.weight": get(f"{part}_norm.weight") + 1 for part in "qk"}
    return tensors


def feed_tensors(get: Get, dense: bool) -> dict[str, np.ndarray]:
    parts = ("gate", "up", "down")
    if dense:
        return {f"ffn_{part}.weight": get(f"{part}_proj.weight") for part in parts}
    gate, up = np.split(get("experts.gate_up_proj"), 2, axis=1)
    return {
        "ffn_gate_inp.weight": get("gate.weight"),
        "ffn_gate_exps.weight": gate,
        "ffn_up_exps.weight": up,
        "ffn_down_exps.weight": get("experts.down_proj"),
        "ffn_gate_inp_shexp.weight": get("shared_expert_gate.weight"),
    } | {f"ffn_{part}_shexp.weight": get(f"shared_expert.{part}_proj.weight") for part in parts}
