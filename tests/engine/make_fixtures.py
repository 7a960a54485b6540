"""Makes the tiny models in tests/data/engine: random weights, and what transformers computes with them in float32.

Run once, with the `train` extra installed: python -m tests.engine.make_fixtures
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer

from tests.engine.convert import write_gguf
from tests.engine.make_tokenizer import VOCAB, make_tokenizer, write_vocabulary

DATA = Path(__file__).parents[1] / "data" / "engine"

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

LONG_PROMPT = [place * place % 509 for place in range(4096)]
LONG_COUNTS = (128, 1024, 4080, 4096)


@dataclass(frozen=True)
class Sizes:
    """What a model is made of; by default that of the committed ones."""

    vocabulary: int = VOCAB
    layers: int = 4
    hidden: int = 64
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 16
    rotated: float = 0.5
    sections: tuple[int, ...] = (2, 1, 1)
    key_heads: int = 2
    value_heads: int = 6
    delta_dim: int = 16
    experts: int = 8
    used: int = 2
    width: int = 96
    expert_width: int = 32
    context: int = 4096


def make_model(arch: str, seed: int, sizes: Sizes = Sizes()) -> torch.nn.Module:
    """A model of `arch` in float32, whose random weights make every part of it count."""
    torch.manual_seed(seed)
    common: dict[str, Any] = {
        "vocab_size": sizes.vocabulary,
        "hidden_size": sizes.hidden,
        "num_hidden_layers": sizes.layers,
        "num_attention_heads": sizes.heads,
        "num_key_value_heads": sizes.kv_heads,
        "head_dim": sizes.head_dim,
        "intermediate_size": sizes.width,
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": arch in ("llama", "qwen35"),
        "max_position_embeddings": sizes.context,
    }
    delta = {
        "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": sizes.delta_dim,
        "linear_value_head_dim": sizes.delta_dim,
        "linear_num_key_heads": sizes.key_heads,
        "linear_num_value_heads": sizes.value_heads,
    }
    experts = {
        "moe_intermediate_size": sizes.expert_width,
        "shared_expert_intermediate_size": sizes.expert_width,
        "num_experts": sizes.experts,
        "num_experts_per_tok": sizes.used,
    }
    rope = {"rope_type": "default", "rope_theta": 1e6, "partial_rotary_factor": sizes.rotated}
    sections = {**rope, "mrope_section": list(sizes.sections), "mrope_interleaved": True}
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


def long_reference(model: torch.nn.Module) -> dict[str, list[float]]:
    """Logits after so many of the tokens of `LONG_PROMPT`."""
    with torch.no_grad():
        logits = model(torch.tensor([LONG_PROMPT]), use_cache=False).logits[0]
    return {str(count): [float(f"{value:.8g}") for value in logits[count - 1].tolist()] for count in LONG_COUNTS}


def main() -> None:
    DATA.mkdir(parents=True, exist_ok=True)
    for arch, seed in SEEDS.items():
        tokenizer, model = make_tokenizer(PRE[arch]), make_model(arch, seed)
        path, pre = DATA / f"{arch}-tiny.gguf", PRE[arch]
        write_gguf(path, model, lambda writer, pre=pre, own=tokenizer: write_vocabulary(writer, pre, own), 4096)
        answers = [reference(model, tokenizer, prompt) for prompt in PROMPTS]
        (DATA / f"{arch}-tiny.json").write_text(json.dumps(answers))
        (DATA / f"{arch}-tiny-long.json").write_text(json.dumps(long_reference(model)))
        print(arch, [(len(answer["ids"]), round(answer["min_gap"], 5)) for answer in answers])


if __name__ == "__main__":
    main()
