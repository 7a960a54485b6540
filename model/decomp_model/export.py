"""The trained network as ONNX: int8 weights inside the encoder, float32 heads, 4-bit word embeddings."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import torch
from onnx import load as load_onnx
from onnx import save as save_onnx
from onnx.numpy_helper import from_array, to_array
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.quantization.shape_inference import quant_pre_process

from decomp_model.network import DecomposerNetwork
from decomp_model.rounding import LEVELS, settle_on_grid, split_wide_channels
from decomp_router.decompose.network import OUTPUTS

OPSET = 17


def export(network: DecomposerNetwork, target: Path) -> None:
    """Write TARGET (int8 ONNX), with wide channels left in float32. Leaves the float32 graph beside it as
    *.float32.onnx for comparison: the same weights, which lie on the 8-bit grids already, with exact inputs.
    Rounds and splits the network given."""
    settle_on_grid(network)
    write_plain(network, target.with_suffix(".float32.onnx"))
    split, prepared = target.with_suffix(".split.onnx"), target.with_suffix(".prepared.onnx")
    split_wide_channels(network)
    write_plain(network, split)
    quant_pre_process(str(split), str(prepared), skip_symbolic_shape=True)
    quantize_dynamic(
        str(prepared),
        str(target),
        weight_type=QuantType.QUInt8,  # u8 x s8 products saturate on AVX2 without VNNI and cost 2% accuracy there
        per_channel=True,
        op_types_to_quantize=["MatMul"],
        nodes_to_exclude=_kept(prepared),
        extra_options={"DefaultTensorType": 1, "WeightSymmetric": True},
    )
    _keep_grids(target, prepared)
    split.unlink()
    prepared.unlink()


def _keep_grids(target: Path, prepared: Path) -> None:
    """Put the weights on the very grids that they lie on: the quantiser makes its own, half a step wider."""
    plain = {tensor.name: tensor for tensor in load_onnx(str(prepared)).graph.initializer}
    model = load_onnx(str(target))
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    for name in [name.removesuffix("_quantized") for name in tensors if name.endswith("_quantized")]:
        turned = name.removesuffix("_Transposed")  # of a product with bias, which the quantiser takes apart
        weight = to_array(plain[turned]).T if turned != name else to_array(plain[name])  # [in, out]
        scale = np.abs(weight).max(0).clip(1e-8) / LEVELS
        codes = np.rint(weight / scale) + 128
        for suffix, array in (
            ("quantized", codes.astype(np.uint8)),
            ("scale", scale.astype(np.float32)),
            ("zero_point", np.full(len(scale), 128, np.uint8)),
        ):
            tensors[f"{name}_{suffix}"].CopyFrom(from_array(array, f"{name}_{suffix}"))
    save_onnx(model, str(target))


def write_plain(network: DecomposerNetwork, target: Path) -> None:
    """The network as it is, float32."""
    example = torch.randint(5, 1000, (2, 24))
    axes = {"ids": {0: "batch", 1: "length"}, "layout": {0: "batch", 1: "length"}}
    axes |= {name: {0: "batch"} if name == "guard" else {0: "batch", 1: "length"} for name in OUTPUTS}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the TorchScript exporter announces its successor, which int8 tools lag behind
        torch.onnx.export(
            network.cpu().eval(), (example, torch.zeros_like(example)), str(target), opset_version=OPSET, dynamo=False,
            input_names=["ids", "layout"], output_names=list(OUTPUTS), dynamic_axes=axes,
        )  # fmt: skip


def _kept(path: Path) -> list[str]:
    """Matrix products that stay in float32: wide channels, and the small ones outside the encoder, whose outputs are
    compared with thresholds."""
    nodes = load_onnx(str(path), load_external_data=False).graph.node
    names = {node.name: f"{node.name}_MatMul" if node.op_type == "Gemm" else node.name for node in nodes}
    rounded = ("/encoder/", "/guard_hidden/")
    return [name for node, name in names.items() if "/wide/" in node or not node.startswith(rounded)]
