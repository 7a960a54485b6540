"""The network in PyTorch: a BERT encoder with heads for tags, pairs, lengths and the guard."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from decomp_model.base import BLOCK
from decomp_model.rounding import GridLinear
from decomp_router.decompose.labels import TAGS
from decomp_router.decompose.tokens import LAYOUTS, PAD
from decomp_router.plan import LENGTH_CLASSES

Arrays = dict[str, npt.NDArray[np.generic]]


@dataclass(frozen=True)
class NetworkConfig:
    """Sizes; the encoder's are those of multilingual-e5-small."""

    vocabulary: int
    hidden: int = 384
    layers: int = 12
    heads: int = 12
    feed_forward: int = 1536
    positions: int = 512
    pair: int = 128

    def save(self, path: Path) -> None:
        """Write as JSON."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")


class WordEmbedding(nn.Module):
    """Word embeddings kept in the 4-bit blocks they came in; frozen, so that the export loses nothing.

    Unpacking uses plain arithmetic, which every ONNX runtime has.
    """

    packed: Tensor
    scales: Tensor

    def __init__(self, vocabulary: int, hidden: int) -> None:
        super().__init__()
        self.register_buffer("packed", torch.zeros(vocabulary, hidden // 2, dtype=torch.uint8))
        self.register_buffer("scales", torch.zeros(vocabulary, hidden // BLOCK, dtype=torch.float16))

    def forward(self, ids: Tensor) -> Tensor:
        """ids [B, L] -> float32 [B, L, hidden]: (code - 8) * scale."""
        pairs = self.packed[ids].float()
        high = torch.floor(pairs / 16)
        codes = torch.stack([pairs - 16 * high, high], dim=-1).flatten(-2)
        scales = self.scales[ids].float().unsqueeze(-1)
        return ((codes - 8).unflatten(-1, (-1, BLOCK)) * scales).flatten(-2)


class Layer(nn.Module):
    """One post-norm transformer layer (Devlin et al. 2018)."""

    def __init__(self, config: NetworkConfig, dropout: float) -> None:
        super().__init__()
        hidden = config.hidden
        self.heads, self.dropout = config.heads, nn.Dropout(dropout)
        self.query, self.key, self.value = (GridLinear(hidden, hidden) for _ in range(3))
        self.attention_out = GridLinear(hidden, hidden)
        self.attention_norm = nn.LayerNorm(hidden, eps=1e-12)
        self.feed_in = GridLinear(hidden, config.feed_forward)
        self.feed_out = GridLinear(config.feed_forward, hidden)
        self.output_norm = nn.LayerNorm(hidden, eps=1e-12)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """x [B, L, hidden], mask additive [B, 1, 1, L]."""
        batch, length, hidden = x.shape

        def split(y: Tensor) -> Tensor:
            return y.view(batch, length, self.heads, hidden // self.heads).transpose(1, 2)

        q, k, v = split(self.query(x)), split(self.key(x)), split(self.value(x))
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        mixed = mixed.transpose(1, 2).reshape(batch, length, hidden)
        x = self.attention_norm(x + self.dropout(self.attention_out(mixed)))
        return self.output_norm(x + self.dropout(self.feed_out(F.gelu(self.feed_in(x)))))


class Encoder(nn.Module):
    """Joint attention over the whole prompt; layout embeddings stand in for the lost line breaks."""

    def __init__(self, config: NetworkConfig, dropout: float) -> None:
        super().__init__()
        self.words = WordEmbedding(config.vocabulary, config.hidden)
        self.positions = nn.Parameter(torch.zeros(config.positions, config.hidden))
        self.layouts = nn.Embedding(LAYOUTS, config.hidden)
        self.norm = nn.LayerNorm(config.hidden, eps=1e-12)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(Layer(config, dropout) for _ in range(config.layers))

    def forward(self, ids: Tensor, layout: Tensor) -> Tensor:
        """ids, layout int64 [B, L] -> float [B, L, hidden]."""
        x = self.words(ids) + self.positions[: ids.shape[1]] + self.layouts(layout)
        x = self.dropout(self.norm(x))
        mask = (ids == PAD).to(x.dtype)[:, None, None, :] * -10_000.0
        for layer in self.layers:
            x = layer(x, mask)
        return x


class DecomposerNetwork(nn.Module):
    """One pass over a prompt: every output that decomp_router.decompose.network.Scores names, batched."""

    def __init__(self, config: NetworkConfig, dropout: float = 0.1) -> None:
        super().__init__()
        self.encoder = Encoder(config, dropout)
        self.dropout = nn.Dropout(dropout)
        self.tags = nn.Linear(config.hidden, len(TAGS))
        self.parent = nn.Linear(config.hidden, config.pair)
        self.child = nn.Linear(config.hidden, config.pair)
        self.bilinear = nn.Parameter(torch.randn(config.pair, config.pair) * 0.1 / config.pair**0.5)
        self.parent_bias = nn.Linear(config.pair, 1)
        self.child_bias = nn.Linear(config.pair, 1)
        self.length = nn.Linear(config.hidden, LENGTH_CLASSES)
        self.telling = nn.Linear(config.hidden, 1)
        self.guard_hidden = GridLinear(3 * config.hidden, config.hidden)
        self.guard = nn.Linear(config.hidden, 1)

    def forward(self, ids: Tensor, layout: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """ids, layout int64 [B, L] -> tags [B, L, T], parents, children [B, L, D], lengths [B, L, 4], guard [B]."""
        x = self.dropout(self.encoder(ids, layout))
        parent, child = F.gelu(self.parent(x)), F.gelu(self.child(x))
        one = torch.ones_like(parent[..., :1])
        # parents . children = parent U child + both biases, also after averaging each over a span
        parents = torch.cat([parent @ self.bilinear, self.parent_bias(parent), one], dim=-1)
        children = torch.cat([child, one, self.child_bias(child)], dim=-1)
        return self.tags(x), parents, children, self.length(x), self._guard(x, ids != PAD)

    def _guard(self, x: Tensor, real: Tensor) -> Tensor:
        """x [B, L, hidden], real bool [B, L] -> [B]: from the first token, the mean, and the tokens that tell most."""
        share = real.to(x.dtype)[..., None]
        mean = (x * share).sum(1) / share.sum(1)
        weight = torch.softmax(self.telling(x) - 10_000.0 * (1 - share), dim=1)
        told = (x * weight).sum(1)
        return self.guard(torch.tanh(self.guard_hidden(torch.cat([x[:, 0], mean, told], dim=-1))))[:, 0]


def from_base(path: Path, dropout: float = 0.1, layers: int = 12) -> tuple[DecomposerNetwork, NetworkConfig]:
    """The pretrained encoder of `base.npz` under fresh heads; of fewer layers, evenly spaced ones are kept."""
    arrays = dict(np.load(path))
    packed = arrays.pop("words.codes")
    scales = arrays.pop("words.scales")
    config = NetworkConfig(vocabulary=len(packed), layers=layers)
    arrays = _kept_layers(arrays, layers)
    network = DecomposerNetwork(config, dropout)
    state = {name: torch.from_numpy(array.astype(np.float32)) for name, array in arrays.items()}
    state |= {"words.packed": torch.from_numpy(packed), "words.scales": torch.from_numpy(scales)}
    state["layouts.weight"] = state.pop("type").repeat(LAYOUTS, 1)
    missing, unexpected = network.encoder.load_state_dict(state, strict=False)
    assert not unexpected
    assert all(name.endswith(".wide") for name in missing)
    return network, config


def _kept_layers(arrays: Arrays, layers: int) -> Arrays:
    """Layers 0, 12/n, 2 x 12/n, ... of the pretrained ones, numbered anew."""
    step = NetworkConfig.layers // layers
    kept = {name: array for name, array in arrays.items() if not name.startswith("layers.")}
    for name, array in arrays.items():
        if name.startswith("layers."):
            _, number, rest = name.split(".", 2)
            if int(number) % step == 0 and int(number) // step < layers:
                kept[f"layers.{int(number) // step}.{rest}"] = array
    return kept
