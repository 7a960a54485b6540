"""Makes the tiny models in tests/data/engine: random weights, and what transformers computes with them in float32.

Run once, with the `train` extra installed: python -m tests.engine.make_fixtures
"""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from gguf import GGUFWriter
from tokenizers import Tokenizer

from tests.engine.make_tokenizer import VOCAB, make_tokenizer, write_vocabulary

DATA = Path(__file__).parents[1] / "data" / "engine"
Get = Callable[[str], np.ndarray]

LAYERS, HIDDEN, HEADS, KV_HEADS, HEAD_DIM = 4, 64, 4, 2, 16
KEY_HEADS, VALUE_HEADS, DELTA_DIM = 2, 6, 16
EXPERTS, USED, WIDTH, EXPERT_WIDTH = 8, 2, 96, 32
EPS = 1e-6
SEEDS = {"llama": 11, "qwen3next": 12, "qwen35": 13, "qwen35moe": 14}
PRE = {"llama": "smollm", "qwen3next": "qwen2", "qwen35": "qwen35", "qwen35moe": "qwen35"}

PROMPTS = [
    "The quick brown fox",
    "Explain why the sky is blue, then write a poem about it.",
    "def main():\n    return [x for x in range(10)]\n",
    "1 2 3 4 567 2026",
    "A router stands in front of an engine and sees when one prompt holds several independent tasks. " * 6,
    "mañana será otro día; Grüße 🎉",
]


def make_model(arch: str) -> torch.nn.Module:
    torch.manual_seed(SEEDS[arch])
    common: dict[str, Any] = {
        "vocab_size": VOCAB,
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "intermediate_size": WIDTH,
        "rms_norm_eps": EPS,
        "tie_word_embeddings": arch in ("llama", "qwen35"),
        "max_position_embeddings": 4096,
    }
    delta = {
        "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": DELTA_DIM,
        "linear_value_head_dim": DELTA_DIM,
        "linear_num_key_heads": KEY_HEADS,
        "linear_num_value_heads": VALUE_HEADS,
    }
    experts = {
        "moe_intermediate_size": EXPERT_WIDTH,
        "shared_expert_intermediate_size": EXPERT_WIDTH,
        "num_experts": EXPERTS,
        "num_experts_per_tok": USED,
    }
    rope = {"rope_type": "default", "rope_theta": 1e6, "partial_rotary_factor": 0.5}
    sections = {**rope, "mrope_section": [2, 1, 1], "mrope_interleaved": True}
    if arch == "llama":
        plain = {"rope_type": "default", "rope_theta": 1e5}
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**common, rope_parameters=plain))
    elif arch == "qwen3next":
        config = transformers.Qwen3NextConfig(**common, **delta, **experts, norm_topk_prob=True, rope_parameters=rope)
        model = transformers.Qwen3NextForCausalLM(config)
    elif arch == "qwen35":
        model = transformers.Qwen3_5ForCausalLM(
            transformers.Qwen3_5TextConfig(**common, **delta, rope_parameters=sections)
        )
    else:
        del common["intermediate_size"]
        config = transformers.Qwen3_5MoeTextConfig(**common, **delta, **experts, rope_parameters=sections)
        model = transformers.Qwen3_5MoeForCausalLM(config)
    model = model.float().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            randomise(name, parameter, centred=arch != "llama")
    return model


def randomise(name: str, parameter: torch.Tensor, centred: bool) -> None:
    if name.endswith("A_log"):
        parameter.uniform_(math.log(0.005), math.log(4.0))
    elif name.endswith("dt_bias"):
        parameter.uniform_(-4.0, 1.0)
    elif "conv1d" in name:
        parameter.normal_(0, 0.5)
    elif name.endswith("linear_attn.norm.weight") or (parameter.ndim == 1 and not centred):
        parameter.normal_(1, 0.2)
    elif parameter.ndim == 1:
        parameter.normal_(0, 0.2)
    else:
        parameter.normal_(0, (0.5 if "embed" in name else 1.2) / math.sqrt(parameter.shape[-1]))


def tiled(rows: np.ndarray) -> np.ndarray:
    """Value heads in the order of qwen35 files: head p reads key head p % KEY_HEADS."""
    grouped = rows.reshape(KEY_HEADS, VALUE_HEADS // KEY_HEADS, -1, *rows.shape[1:])
    return grouped.swapaxes(0, 1).reshape(rows.shape)


def interleaved(rows: np.ndarray) -> np.ndarray:
    """Rope pairs side by side, as in llama files."""
    return rows.reshape(-1, 2, HEAD_DIM // 2, HIDDEN).swapaxes(1, 2).reshape(rows.shape)


def delta_tensors(arch: str, get: Get) -> dict[str, np.ndarray]:
    key_width, value_width, group = KEY_HEADS * DELTA_DIM, VALUE_HEADS * DELTA_DIM, VALUE_HEADS // KEY_HEADS
    conv = get("conv1d.weight")[:, 0]
    tensors = {"ssm_norm.weight": get("norm.weight")}
    if arch == "qwen3next":
        mixed = get("in_proj_qkvz.weight").reshape(KEY_HEADS, -1, HIDDEN)
        ends = np.cumsum([DELTA_DIM, DELTA_DIM, group * DELTA_DIM])
        q, k, v, z = (part.reshape(-1, HIDDEN) for part in np.split(mixed, ends, axis=1))
        order = np.asarray
        tensors["ssm_ba.weight"] = get("in_proj_ba.weight")
    else:
        q, k, v = np.split(get("in_proj_qkv.weight"), [key_width, 2 * key_width])
        z, order = get("in_proj_z.weight"), tiled
        tensors["ssm_beta.weight"] = tiled(get("in_proj_b.weight"))
        tensors["ssm_alpha.weight"] = tiled(get("in_proj_a.weight"))
    return tensors | {
        "attn_qkv.weight": np.concatenate([q, k, order(v)]),
        "attn_gate.weight": order(z),
        "ssm_conv1d.weight": np.concatenate([conv[:-value_width], order(conv[-value_width:])]),
        "ssm_dt.bias": order(get("dt_bias")),
        "ssm_a": order(-np.exp(get("A_log"))),
        "ssm_out.weight": order(get("out_proj.weight").T.copy()).T,
    }


def attention_tensors(arch: str, get: Get) -> dict[str, np.ndarray]:
    order = interleaved if arch == "llama" else np.asarray
    tensors = {f"attn_{part}.weight": get(f"{part}_proj.weight") for part in "qkv"}
    tensors |= {f"attn_{part}.weight": order(tensors[f"attn_{part}.weight"]) for part in "qk"}
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


def model_tensors(arch: str, model: torch.nn.Module) -> dict[str, np.ndarray]:
    state = {name: value.numpy() for name, value in model.state_dict().items()}
    shift = 0 if arch == "llama" else 1
    tensors = {"token_embd.weight": state["model.embed_tokens.weight"]}
    tensors["output_norm.weight"] = state["model.norm.weight"] + shift
    if not model.config.tie_word_embeddings:
        tensors["output.weight"] = state["lm_head.weight"]
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}."
        mixer = "linear_attn" if f"{prefix}linear_attn.A_log" in state else "self_attn"
        convert = delta_tensors if mixer == "linear_attn" else attention_tensors
        block = convert(arch, lambda name, base=f"{prefix}{mixer}.": state[base + name])
        block |= feed_tensors(lambda name, base=f"{prefix}mlp.": state[base + name], dense=arch in ("llama", "qwen35"))
        block["attn_norm.weight"] = state[f"{prefix}input_layernorm.weight"] + shift
        after = "ffn_norm" if arch == "llama" else "post_attention_norm"
        block[f"{after}.weight"] = state[f"{prefix}post_attention_layernorm.weight"] + shift
        tensors |= {f"blk.{layer}.{name}": value for name, value in block.items()}
    if arch != "llama":
        tensors[f"blk.{LAYERS}.nextn.eh_proj.weight"] = np.ones((HIDDEN, 2 * HIDDEN), np.float32)
    return tensors


def write_keys(writer: GGUFWriter, arch: str, tokenizer: Tokenizer) -> None:
    writer.add_name(f"tiny {arch}")
    writer.add_block_count(LAYERS + (arch != "llama"))
    writer.add_context_length(4096)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(WIDTH)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_key_length(HEAD_DIM)
    writer.add_value_length(HEAD_DIM)
    writer.add_layer_norm_rms_eps(EPS)
    writer.add_rope_freq_base(1e5 if arch == "llama" else 1e6)
    writer.add_rope_dimension_count(HEAD_DIM if arch == "llama" else HEAD_DIM // 2)
    if arch != "llama":
        writer.add_uint32(f"{arch}.nextn_predict_layers", 1)
        writer.add_full_attention_interval(4)
        writer.add_ssm_conv_kernel(4)
        writer.add_ssm_state_size(DELTA_DIM)
        writer.add_ssm_group_count(KEY_HEADS)
        writer.add_ssm_time_step_rank(VALUE_HEADS)
        writer.add_ssm_inner_size(VALUE_HEADS * DELTA_DIM)
    if arch in ("qwen3next", "qwen35moe"):
        writer.add_expert_count(EXPERTS)
        writer.add_expert_used_count(USED)
        writer.add_expert_feed_forward_length(EXPERT_WIDTH)
        writer.add_expert_shared_feed_forward_length(EXPERT_WIDTH)
    write_vocabulary(writer, PRE[arch], tokenizer)


def reference(model: torch.nn.Module, tokenizer: Tokenizer, prompt: str) -> dict[str, Any]:
    """Greedy tokens by full recomputation, so that no cache of transformers is involved."""
    ids = tokenizer.encode(prompt).ids
    tokens, gaps, first = list(ids), [], None
    for _ in range(48):
        with torch.no_grad():
            logits = model(torch.tensor([tokens]), use_cache=False).logits[0, -1]
        first = logits if first is None else first
        best = torch.topk(logits, 2)
        gaps.append(float(best.values[0] - best.values[1]))
        tokens.append(int(best.indices[0]))
    assert first is not None
    return {
        "prompt": prompt,
        "ids": ids,
        "greedy": tokens[len(ids) :],
        "min_gap": min(gaps),
        "last_logits": [float(f"{value:.8g}") for value in first.tolist()],
    }


def main() -> None:
    DATA.mkdir(parents=True, exist_ok=True)
    for arch in SEEDS:
        tokenizer, model = make_tokenizer(PRE[arch]), make_model(arch)
        writer = GGUFWriter(DATA / f"{arch}-tiny.gguf", arch)
        write_keys(writer, arch, tokenizer)
        for name, values in model_tensors(arch, model).items():
            writer.add_tensor(name, np.ascontiguousarray(values, np.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        answers = [reference(model, tokenizer, prompt) for prompt in PROMPTS]
        (DATA / f"{arch}-tiny.json").write_text(json.dumps(answers))
        print(arch, [(len(answer["ids"]), round(answer["min_gap"], 5)) for answer in answers])


if __name__ == "__main__":
    main()
