"""Models of random blocks: every number format, without a quantiser."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFReader, GGUFWriter

from pascal_engine.synth.blocks import random_weights
from tests.engine.harness import DATA

Q = GGMLQuantizationType


def random_blocks(kind: Q, shape: tuple[int, ...], rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    """Weights of spread 1.2 / sqrt(inputs) in the number format `kind`, made without a quantiser."""
    return random_weights(kind, shape, 1.2 / np.sqrt(shape[-1]), rng)


class SyntheticWriter:
    """Writes a model of random blocks: hidden 256, 4 layers, the vocabulary of the committed tiny models."""

    HIDDEN, WIDTH, EXPERTS, EXPERT_WIDTH = 256, 256, 4, 32

    def __init__(self, path: Path, arch: str, kinds: tuple[Q, ...]) -> None:
        self.arch, self.kinds = arch, kinds
        self.rng = np.random.default_rng(5)
        self.writer = GGUFWriter(path, arch)
        self.count = 0
        self._keys()
        self.matrix("token_embd", 512, self.HIDDEN)
        self.ones("output_norm", self.HIDDEN)
        for layer in range(4):
            self._layer(f"blk.{layer}.", recurrent=layer != 3)
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()

    def matrix(self, name: str, *shape: int) -> None:
        """Takes the types in turn; rows too short for a block of a K type become Q5_0."""
        kind = self.kinds[self.count % len(self.kinds)]
        self.count += 1
        kind = kind if shape[-1] % GGML_QUANT_SIZES[kind][0] == 0 else Q.Q5_0
        self.writer.add_tensor(f"{name}.weight", random_blocks(kind, shape, self.rng), raw_dtype=kind)

    def ones(self, name: str, *shape: int) -> None:
        self.floats(f"{name}.weight", 1 + 0.1 * self.rng.standard_normal(shape))

    def floats(self, name: str, values: npt.NDArray[np.floating]) -> None:
        self.writer.add_tensor(name, np.asarray(values, np.float32))

    def _keys(self) -> None:
        writer, arch = self.writer, self.arch
        tiny = GGUFReader(DATA / f"{arch}-tiny.gguf")
        for key in ("tokens", "token_type", "merges"):
            writer.add_array(f"tokenizer.ggml.{key}", tiny.fields[f"tokenizer.ggml.{key}"].contents())
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre(tiny.fields["tokenizer.ggml.pre"].contents())
        writer.add_eos_token_id(tiny.fields["tokenizer.ggml.eos_token_id"].contents())
        figures = {
            "block_count": 4,
            "context_length": 1024,
            "embedding_length": self.HIDDEN,
            "feed_forward_length": self.WIDTH,
            "attention.head_count": 4,
            "attention.head_count_kv": 2,
            "attention.key_length": 64,
            "rope.dimension_count": 64 if arch == "llama" else 16,
            "full_attention_interval": 4,
            "expert_count": self.EXPERTS,
            "expert_used_count": 2,
            "expert_feed_forward_length": self.EXPERT_WIDTH,
            "expert_shared_feed_forward_length": self.EXPERT_WIDTH,
            "ssm.conv_kernel": 4,
            "ssm.state_size": 64,
            "ssm.group_count": 2,
            "ssm.time_step_rank": 4,
        }
        for key, value in figures.items():
            writer.add_uint32(f"{arch}.{key}", value)
        writer.add_layer_norm_rms_eps(1e-6)

    def _layer(self, prefix: str, recurrent: bool) -> None:
        self.ones(f"{prefix}attn_norm", self.HIDDEN)
        self.ones(f"{prefix}{'ffn_norm' if self.arch == 'llama' else 'post_attention_norm'}", self.HIDDEN)
        if recurrent and self.arch != "llama":
            self._delta_net(prefix)
        else:
            self._attention(prefix)
        if self.arch in ("qwen3next", "qwen35moe"):
            self._experts(prefix)
        else:
            self._dense(prefix, "", self.WIDTH)

    def _attention(self, prefix: str) -> None:
        gated = self.arch != "llama"
        for name, width in (("attn_q", 512 if gated else 256), ("attn_k", 128), ("attn_v", 128)):
            self.matrix(prefix + name, width, self.HIDDEN)
        self.matrix(f"{prefix}attn_output", self.HIDDEN, 256)
        for name in ("attn_q_norm", "attn_k_norm") if gated else ():
            self.ones(prefix + name, 64)

    def _delta_net(self, prefix: str) -> None:
        self.matrix(f"{prefix}attn_qkv", 512, self.HIDDEN)
        self.matrix(f"{prefix}attn_gate", 256, self.HIDDEN)
        for name, rows in (("ssm_ba", 8),) if self.arch == "qwen3next" else (("ssm_beta", 4), ("ssm_alpha", 4)):
            self.matrix(prefix + name, rows, self.HIDDEN)
        self.matrix(f"{prefix}ssm_out", self.HIDDEN, 256)
        self.floats(f"{prefix}ssm_conv1d.weight", 0.5 * self.rng.standard_normal((512, 4)))
        self.floats(f"{prefix}ssm_dt.bias", self.rng.uniform(-4, 1, 4))
        self.floats(f"{prefix}ssm_a", -np.exp(self.rng.uniform(-5, 1, 4)))
        self.ones(f"{prefix}ssm_norm", 64)

    def _dense(self, prefix: str, suffix: str, width: int) -> None:
        self.matrix(f"{prefix}ffn_gate{suffix}", width, self.HIDDEN)
        self.matrix(f"{prefix}ffn_up{suffix}", width, self.HIDDEN)
        self.matrix(f"{prefix}ffn_down{suffix}", self.HIDDEN, width)

    def _experts(self, prefix: str) -> None:
        self.floats(f"{prefix}ffn_gate_inp.weight", self.rng.standard_normal((self.EXPERTS, self.HIDDEN)) / 16)
        self.floats(f"{prefix}ffn_gate_inp_shexp.weight", self.rng.standard_normal(self.HIDDEN) / 16)
        self.matrix(f"{prefix}ffn_gate_exps", self.EXPERTS, self.EXPERT_WIDTH, self.HIDDEN)
        self.matrix(f"{prefix}ffn_up_exps", self.EXPERTS, self.EXPERT_WIDTH, self.HIDDEN)
        self.matrix(f"{prefix}ffn_down_exps", self.EXPERTS, self.HIDDEN, self.EXPERT_WIDTH)
        self._dense(prefix, "_shexp", self.EXPERT_WIDTH)
