"""The trained network as ONNX: int8 weights inside the encoder, float32 heads, 4-bit word embeddings."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import torch
from onnx import load as load_onnx
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.quantization.shape_inference import quant_pre_process

from decomp_model.network import DecomposerNetwork
from decomp_model.wide import with_wide_channels
from decomp_router.decompose.network import OUTPUTS
from decomp_router.decompose.tokens import Encoding

OPSET = 17


def export(network: DecomposerNetwork, target: Path, typical: Sequence[Encoding]) -> None:
    """Write TARGET (int8 ONNX), with the channels that are wide on typical prompts left in float32. Leaves the float32
    graph beside it as *.float32.onnx for comparison."""
    plain = target.with_suffix(".float32.onnx")
    write_plain(network, plain)
    split, prepared = target.with_suffix(".split.onnx"), target.with_suffix(".prepared.onnx")
    write_plain(with_wide_channels(network, typical), split)
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
    split.unlink()
    prepared.unlink()


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
    """Matrix products that stay in float32: those outside the encoder, which are small and whose outputs are compared
    with thresholds, and those of wide channels."""
    nodes = load_onnx(str(path), load_external_data=False).graph.node
    return [
        node.name
        for node in nodes
        if node.op_type == "MatMul" and ("/wide/" in node.name or not node.name.startswith("/encoder/"))
    ]
