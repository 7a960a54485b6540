"""What training rehearses is what the 8-bit export computes."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from decomp_router.decompose.tokens import Encoding

torch = pytest.importorskip("torch", reason="training needs the extra `train`")

from decomp_model.network import DecomposerNetwork, NetworkConfig  # noqa: E402
from decomp_model.rounding import (  # noqa: E402
    CHANNELS,
    LEVELS,
    GridLinear,
    SplitLinear,
    grid_layers,
    rehearse,
    settle_on_grid,
    split_wide_channels,
    widest_channels,
)

SMALL = NetworkConfig(vocabulary=200, hidden=32, layers=2, heads=4, feed_forward=64, positions=64, pair=16)


def _network() -> DecomposerNetwork:
    torch.manual_seed(0)
    network = DecomposerNetwork(SMALL).eval()
    network.encoder.words.scales += 0.1
    network.encoder.words.packed.random_(256)
    return network


def _encoding(length: int) -> Encoding:
    ids = np.random.default_rng(length).integers(5, 200, length)
    return Encoding(ids=ids, layout=np.zeros(length, np.int64), spans=np.zeros((length - 2, 2), np.int64))


def _given(length: int) -> tuple[torch.Tensor, torch.Tensor]:
    encoding = _encoding(length)
    return torch.from_numpy(encoding.ids)[None], torch.from_numpy(encoding.layout)[None]


def _layer(inputs: int = 16, outputs: int = 3) -> GridLinear:
    torch.manual_seed(1)
    return GridLinear(inputs, outputs)


def test_weights_settle_on_255_levels_of_their_row_once_and_for_all() -> None:
    layer = _layer()
    settle_on_grid(layer)
    once = layer.weight.detach().clone()
    levels = once / (once.abs().amax(1, keepdim=True) / LEVELS)
    torch.testing.assert_close(levels, levels.round(), rtol=0, atol=1e-3)
    settle_on_grid(layer)
    torch.testing.assert_close(layer.weight.detach(), once, rtol=1e-6, atol=0)


def test_wide_channels_keep_exact_inputs_and_weights() -> None:
    layer = _layer()
    rehearse(layer, {"": torch.zeros(16).index_fill(0, torch.tensor([5]), 1.0)})
    x = torch.randn(1, 4, 16)
    x[..., 5] = 1000.0
    only = torch.zeros_like(x)
    only[..., 5] = 1000.0
    expected = torch.nn.functional.linear(only, layer.weight, layer.bias)
    torch.testing.assert_close(layer(only), expected)
    assert (layer(x) - torch.nn.functional.linear(x, layer.weight, layer.bias)).abs().max() < 0.05


def test_rounded_inputs_take_256_levels_and_zero_is_one_of_them() -> None:
    layer = _layer()
    seen = layer.rounded_inputs(torch.tensor([[[-0.5, 0.0, 1.5] + [0.1] * 13]]))
    assert seen[0, 0, 1] == 0.0
    assert seen.max() <= 1.5 + 2 / 255
    levels = seen / (2.0 / 255)
    torch.testing.assert_close(levels, levels.round(), rtol=0, atol=1e-4)


def test_each_prompt_of_a_batch_has_its_own_levels() -> None:
    layer = _layer()
    rehearse(layer, {})
    small, large = torch.randn(1, 4, 16), 100 * torch.randn(1, 4, 16)
    torch.testing.assert_close(layer(torch.cat([small, large]))[:1], layer(small))


def test_gradients_pass_through_the_rounding() -> None:
    layer = _layer()
    rehearse(layer, {})
    x = torch.randn(2, 4, 16, requires_grad=True)
    layer(x).sum().backward()
    assert x.grad is not None
    assert layer.weight.grad is not None
    torch.testing.assert_close(x.grad, layer.grid_weight().sum(0).expand_as(x))


def test_rehearsal_changes_little_and_settling_ends_it() -> None:
    network = _network()
    before = [out.clone() for out in network(*_given(20))]
    rehearse(network, widest_channels(network, [_encoding(20)]))
    for rehearsed, plain in zip(network(*_given(20)), before, strict=True):
        assert 0 < (rehearsed - plain).abs().max() < 0.05 * (1 + plain.abs().max())
    settle_on_grid(network)
    assert not any(layer.rounded for _, layer in grid_layers(network))


def test_the_split_network_says_the_same() -> None:
    network = _network()
    rehearse(network, widest_channels(network, [_encoding(9), _encoding(30)]))
    settle_on_grid(network)
    split = copy.deepcopy(network)
    split_wide_channels(split)
    assert isinstance(split.encoder.layers[0].feed_in, SplitLinear)
    assert isinstance(split.encoder.layers[0].query, GridLinear), "its inputs have no wide channels"
    for length in (9, 30):
        for mine, theirs in zip(network(*_given(length)), split(*_given(length)), strict=True):
            torch.testing.assert_close(theirs, mine, rtol=1e-4, atol=1e-5)


def test_channels_are_those_with_the_largest_input() -> None:
    network = _network()
    with torch.no_grad():
        network.encoder.layers[0].attention_norm.weight[11] = 50.0
    wide = widest_channels(network, [_encoding(20)])
    assert wide["encoder.layers.0.feed_in"][11] == 1.0
    assert all(marks.sum() == CHANNELS for marks in wide.values())
