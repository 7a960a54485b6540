"""Shapes of real models, as their published configurations give them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Experts:
    """Routed experts of a layer, `n_used` of them for each token, and a shared one of the same width."""

    n_experts: int
    n_used: int
    width: int


@dataclass(frozen=True)
class Shape:
    """A hybrid model; every fourth layer is full attention. `feed` is a dense width, or experts."""

    architecture: str
    hidden: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    n_key_heads: int
    n_value_heads: int
    feed: int | Experts
    n_vocab: int
    tied: bool = False
    context_length: int = 262_144
    head_dim: int = 256
    rope_dim: int = 64
    delta_dim: int = 128
    conv_kernel: int = 4
    attention_interval: int = 4

    @property
    def conv_channels(self) -> int:
        return (2 * self.n_key_heads + self.n_value_heads) * self.delta_dim

    def recurrent(self, layer: int) -> bool:
        return (layer + 1) % self.attention_interval != 0


SHAPES = {
    "qwen35moe-35b-a3b": Shape(
        architecture="qwen35moe",
        hidden=2048,
        n_layers=40,
        n_heads=16,
        n_kv_heads=2,
        n_key_heads=16,
        n_value_heads=32,
        feed=Experts(n_experts=256, n_used=8, width=512),
        n_vocab=248_320,
    ),
    "qwen35-27b": Shape(
        architecture="qwen35",
        hidden=5120,
        n_layers=64,
        n_heads=24,
        n_kv_heads=4,
        n_key_heads=16,
        n_value_heads=48,
        feed=17_408,
        n_vocab=248_320,
    ),
    # No published model: the family's proportions at a size for processors.
    "qwen35moe-1b": Shape(
        architecture="qwen35moe",
        hidden=1024,
        n_layers=24,
        n_heads=8,
        n_kv_heads=2,
        n_key_heads=8,
        n_value_heads=16,
        feed=Experts(n_experts=32, n_used=8, width=256),
        n_vocab=151_936,
        tied=True,
        context_length=32_768,
    ),
}
