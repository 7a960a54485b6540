"""The trained network as ONNX: int8 weights inside the encoder, float32 heads, 4-bit word embeddings."""

from __future__ import annotations

import warnings
from pathlib import Path

import torch
from onnx import load as load_onnx
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.quantization.shape_inference import quant_pre_process

from decomp_model.network import DecomposerNetwork
from decomp_router.decompose.network import OUTPUTS

OPSET = 17


def export(network: DecomposerNetwork, target: Path) -> None:
    """Write TARGET (int8 ONNX). Leaves the float32 graph beside it as *.float32.onnx for comparison."""
    plain = target.with_suffix(".float32.onnx")
    example = torch.randint(5, 1000, (2, 24))
    axes = {"ids": {0: "batch", 1: "length"}, "layout": {0: "batch", 1: "length"}}
    axes |= {name: {0: "batch"} if name == "guard" else {0: "batch", 1: "length"} for name in OUTPUTS}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the TorchScript exporter announces its successor, which int8 tools lag behind
        torch.onnx.export(
            network.cpu().eval(), (example, torch.zeros_like(example)), str(plain), opset_version=OPSET, dynamo=False,
            input_names=["ids", "layout"], output_names=list(OUTPUTS), dynamic_axes=axes,
        )  # fmt: skip
    prepared = target.with_suffix(".prepared.onnx")
    quant_pre_process(str(plain), str(prepared), skip_symbolic_shape=True)
    quantize_dynamic(
        str(prepared),
        str(target),
        weight_type=QuantType.QUInt8,  # u8 x s8 products saturate on AVX2 without VNNI and cost 2% accuracy there
        per_channel=True,
        op_types_to_quantize=["MatMul"],
        nodes_to_exclude=_heads(prepared),
        extra_options={"DefaultTensorType": 1, "WeightSymmetric": True},
    )
    prepared.unlink()


def _heads(path: Path) -> list[str]:
    """Matrix products outside the encoder: small, and their outputs are compared with thresholds."""
    nodes = load_onnx(str(path), load_external_data=False).graph.node
    return [node.name for node in nodes if node.op_type == "MatMul" and not node.name.startswith("/encoder/")]
