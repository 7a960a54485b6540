"""Linear layers whose widest input channels stay in float32 when the rest is quantised."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from decomp_model.network import DecomposerNetwork
from decomp_router.decompose.tokens import Encoding

CHANNELS = 4
SPLIT = ("feed_in", "feed_out")
"""Layers whose input has a few channels some fifteen times as wide as the median: one 8-bit scale cannot serve both."""


class WideLinear(nn.Module):
    """The same product as `linear`, in two: the widest channels of x [..., in] apart from all others."""

    channels: Tensor
    others: Tensor

    def __init__(self, linear: nn.Linear, channels: Tensor) -> None:
        super().__init__()
        others = torch.ones(linear.in_features)
        others[channels] = 0.0
        self.register_buffer("channels", channels)
        self.register_buffer("others", others)
        self.narrow = linear
        self.wide = nn.Linear(len(channels), linear.out_features, bias=False)
        self.wide.weight = nn.Parameter(linear.weight.detach()[:, channels].clone())

    def forward(self, x: Tensor) -> Tensor:
        """x [..., in] -> [..., out]."""
        narrow: Tensor = self.narrow(x * self.others) + self.wide(x.index_select(-1, self.channels))
        return narrow


@torch.no_grad()
def with_wide_channels(network: DecomposerNetwork, encodings: Sequence[Encoding]) -> DecomposerNetwork:
    """A copy whose feed-forward products are split at the channels that are widest on these prompts."""
    network = copy.deepcopy(network).cpu().eval()
    widths = _widths(network, encodings)
    for name, width in widths.items():
        layer, _, role = name.rpartition(".")
        linear = network.get_submodule(name)
        assert isinstance(linear, nn.Linear)
        setattr(network.get_submodule(layer), role, WideLinear(linear, width.topk(CHANNELS).indices.sort().values))
    return network


def _widths(network: DecomposerNetwork, encodings: Sequence[Encoding]) -> dict[str, Tensor]:
    """By name of the layer, [in]: the largest absolute input of each channel."""
    widths: dict[str, Tensor] = {}

    def watch(name: str, linear: nn.Linear) -> torch.utils.hooks.RemovableHandle:
        widths[name] = torch.zeros(linear.in_features)

        def note(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            widths[name] = torch.maximum(widths[name], inputs[0].abs().flatten(0, -2).amax(0))

        return linear.register_forward_pre_hook(note)

    handles = [
        watch(name, module)
        for name, module in network.named_modules()
        if isinstance(module, nn.Linear) and name.endswith(SPLIT)
    ]
    for encoding in encodings:
        network(torch.from_numpy(encoding.ids)[None], torch.from_numpy(encoding.layout)[None])
    for handle in handles:
        handle.remove()
    return widths
