"""Splitting off wide channels changes where products are computed, not what they are."""

from __future__ import annotations

import numpy as np
import pytest

from decomp_router.decompose.tokens import Encoding

torch = pytest.importorskip("torch", reason="training needs the extra `train`")

from decomp_model.network import DecomposerNetwork, NetworkConfig  # noqa: E402
from decomp_model.wide import CHANNELS, WideLinear, with_wide_channels  # noqa: E402

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


def test_the_split_network_says_the_same() -> None:
    network, encodings = _network(), [_encoding(9), _encoding(30)]
    split = with_wide_channels(network, encodings)
    for encoding in encodings:
        given = torch.from_numpy(encoding.ids)[None], torch.from_numpy(encoding.layout)[None]
        for mine, theirs in zip(network(*given), split(*given), strict=True):
            torch.testing.assert_close(theirs, mine, rtol=1e-4, atol=1e-5)


def test_the_widest_channels_bypass_what_is_quantised() -> None:
    linear = torch.nn.Linear(16, 3)
    with torch.no_grad():
        linear.bias.zero_()
    split = WideLinear(linear, torch.tensor([2, 5]))
    seen: list[torch.Tensor] = []
    split.narrow.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    split(torch.full((1, 16), 7.0))
    assert seen[0][0, [2, 5]].tolist() == [0.0, 0.0]
    assert seen[0].sum() == 14 * 7.0


def test_channels_are_those_with_the_largest_input() -> None:
    network = _network()
    with torch.no_grad():
        network.encoder.layers[0].attention_norm.weight[11] = 50.0
    split = with_wide_channels(network, [_encoding(20)])
    wide = split.encoder.layers[0].feed_in
    assert isinstance(wide, WideLinear)
    assert 11 in wide.channels
    assert len(wide.channels) == CHANNELS
    assert isinstance(network.encoder.layers[0].feed_in, torch.nn.Linear), "the network given stays as it is"
