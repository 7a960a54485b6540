"""Linear layers that can work as their 8-bit export will, so that training learns to live with the rounding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from decomp_router.decompose.tokens import Encoding

CHANNELS = 4
SPLIT = ("feed_in", "feed_out")
"""Layers whose input has a few channels some fifteen times as wide as the median: one 8-bit scale cannot serve both."""
LEVELS = 127
"""Largest weight of a row, in steps."""


class GridLinear(nn.Linear):
    """A linear layer; when `rounded`, weights and inputs go through the 8-bit grids of the export, except the inputs
    marked in `wide` [in] (1.0 for a channel that stays in float32, else 0.0)."""

    wide: Tensor

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs)
        self.register_buffer("wide", torch.zeros(inputs))
        self.rounded = False

    def forward(self, x: Tensor) -> Tensor:
        """x [..., in] -> [..., out]."""
        if not self.rounded:
            return F.linear(x, self.weight, self.bias)
        return F.linear(self.rounded_inputs(x), self.grid_weight(), self.bias)

    def rounded_inputs(self, x: Tensor) -> Tensor:
        """x [batch, ..., in], each prompt on the grid of its own values, but for wide channels."""
        return straight_through(x * (1 - self.wide), _on_input_grid) + x * self.wide

    def grid_weight(self) -> Tensor:
        """[out, in]: the weight on the grid of its rows, but for the columns of wide channels."""
        return straight_through(self.weight * (1 - self.wide), _on_weight_grid) + self.weight * self.wide


def straight_through(x: Tensor, rounding: Callable[[Tensor], Tensor]) -> Tensor:
    """The rounded values, with the gradient of the values themselves (Bengio et al. 2013)."""
    rounded: Tensor = x + (rounding(x.detach()) - x.detach())
    return rounded


def _on_weight_grid(weight: Tensor) -> Tensor:
    """[out, in] on the nearest of 255 levels of its row."""
    scale = weight.abs().amax(1, keepdim=True).clamp_min(1e-8) / LEVELS
    return torch.round(weight / scale) * scale


def _on_input_grid(x: Tensor) -> Tensor:
    """[batch, ..., in] on the nearest of 256 levels between least and greatest value of each prompt, as ONNX's
    DynamicQuantizeLinear has it."""
    inside = tuple(range(1, x.dim()))
    least = x.amin(inside, keepdim=True).clamp_max(0.0)
    scale = (x.amax(inside, keepdim=True).clamp_min(0.0) - least).clamp_min(1e-8) / 255
    zero = torch.round(-least / scale)
    return (torch.round(x / scale) + zero).clamp(0, 255).sub(zero) * scale


def grid_layers(network: nn.Module) -> Iterable[tuple[str, GridLinear]]:
    """Every layer that is exported to 8 bit, by name."""
    return ((name, module) for name, module in network.named_modules() if isinstance(module, GridLinear))


def rehearse(network: nn.Module, wide: dict[str, Tensor]) -> None:
    """From now on the network computes as its 8-bit export would, with these channels (widest_channels) in float32."""
    for name, layer in grid_layers(network):
        layer.rounded = True
        if name in wide:
            layer.wide.copy_(wide[name])


@torch.no_grad()
def settle_on_grid(network: nn.Module) -> None:
    """Round the weights for good and compute plainly with them: the float32 network that the export approximates."""
    for _, layer in grid_layers(network):
        layer.weight.copy_(layer.grid_weight())
        layer.rounded = False


@torch.no_grad()
def widest_channels(network: nn.Module, encodings: Sequence[Encoding]) -> dict[str, Tensor]:
    """By name of the layer, [in]: 1.0 for the channels whose inputs are widest on these prompts."""
    widths: dict[str, Tensor] = {}

    def watch(name: str, layer: GridLinear) -> torch.utils.hooks.RemovableHandle:
        widths[name] = torch.zeros_like(layer.wide)

        def note(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            widths[name] = torch.maximum(widths[name], inputs[0].abs().flatten(0, -2).amax(0).float())

        return layer.register_forward_pre_hook(note)

    handles = [watch(name, layer) for name, layer in grid_layers(network) if name.endswith(SPLIT)]
    device = next(network.parameters()).device
    for encoding in encodings:
        network(*(torch.from_numpy(row)[None].to(device) for row in (encoding.ids, encoding.layout)))
    for handle in handles:
        handle.remove()
    return {
        name: torch.zeros_like(width).index_fill(0, width.topk(CHANNELS).indices, 1.0) for name, width in widths.items()
    }


class SplitLinear(nn.Module):
    """The same product as a settled GridLinear's, in two for the export: wide channels of x [..., in] apart."""

    channels: Tensor
    others: Tensor

    def __init__(self, linear: GridLinear) -> None:
        super().__init__()
        channels = linear.wide.nonzero()[:, 0]
        self.register_buffer("channels", channels)
        self.register_buffer("others", 1 - linear.wide)
        self.narrow = nn.Linear(linear.in_features, linear.out_features)
        self.narrow.weight = nn.Parameter(linear.weight.detach() * self.others)
        self.narrow.bias = linear.bias
        self.wide = nn.Linear(len(channels), linear.out_features, bias=False)
        self.wide.weight = nn.Parameter(linear.weight.detach()[:, channels].clone())

    def forward(self, x: Tensor) -> Tensor:
        """x [..., in] -> [..., out]."""
        split: Tensor = self.narrow(x * self.others) + self.wide(x.index_select(-1, self.channels))
        return split


def split_wide_channels(network: nn.Module) -> None:
    """Put every layer that has wide channels in two, in place."""
    for name, layer in list(grid_layers(network)):
        if layer.wide.any():
            parent, _, role = name.rpartition(".")
            setattr(network.get_submodule(parent), role, SplitLinear(layer))
