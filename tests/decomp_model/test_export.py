"""The 8-bit export holds the very weights that training settled on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="training needs the extra `train`")
pytest.importorskip("onnx", reason="training needs the extra `train`")

import torch
from onnx import load
from onnx.numpy_helper import to_array
from onnxruntime import InferenceSession

from decomp_model.export import export
from decomp_model.network import DecomposerNetwork, NetworkConfig
from decomp_model.rounding import grid_layers, rehearse

SMALL = NetworkConfig(vocabulary=1200, hidden=32, layers=2, heads=4, feed_forward=64, positions=64, pair=16)


def _exported(folder: Path) -> tuple[DecomposerNetwork, Path]:
    torch.manual_seed(0)
    network = DecomposerNetwork(SMALL).eval()
    network.encoder.words.scales += 0.1
    network.encoder.words.packed.random_(256)
    feeds = [name for name, _ in grid_layers(network) if name.endswith("feed_in")]
    rehearse(network, {name: torch.zeros(32).index_fill(0, torch.tensor([3, 7]), 1.0) for name in feeds})
    export(network, folder / "network.onnx")
    return network, folder / "network.onnx"


def test_weights_in_8_bit_are_those_of_the_float32_graph(tmp_path: Path) -> None:
    network, path = _exported(tmp_path)
    tensors = {tensor.name: to_array(tensor) for tensor in load(str(path)).graph.initializer}
    decoded = [
        (tensors[name].astype(np.float32) - 128) * tensors[name.replace("_quantized", "_scale")]
        for name in tensors
        if name.endswith("_quantized")
    ]
    settled = [layer.weight.detach().numpy().T for _, layer in grid_layers(network)]
    assert len(decoded) == 2 * 6 + 1
    for weight in settled:
        assert any(d.shape == weight.shape and np.abs(d - weight).max() < 1e-6 for d in decoded)


def test_both_graphs_say_nearly_the_same(tmp_path: Path) -> None:
    _, path = _exported(tmp_path)
    ids = np.random.default_rng(0).integers(5, 1200, (1, 30))
    given = {"ids": ids, "layout": np.zeros_like(ids)}
    rounded = InferenceSession(path).run(None, given)
    plain = InferenceSession(path.with_suffix(".float32.onnx")).run(None, given)
    for mine, theirs in zip(rounded, plain, strict=True):
        assert np.abs(mine - theirs).max() < 0.05 * (1 + np.abs(theirs).max())
