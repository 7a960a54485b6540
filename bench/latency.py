"""What a whole decomposition costs beside the plain forward pass of its encoder: `python bench/latency.py`.

Both arms run in turn on one thread, on prompts of 64, 128 and 512 tokens with many sub-tasks; writes
docs/results/latency.json. The peak memory of a process that decomposes is measured in one of its own.
Needs the `onnx` package, which cuts the plain forward pass out of the shipped network.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnx
import onnxruntime
from machine import machine
from rich.progress import track

from decomp_router.decompose.decomposer import Decomposer, load
from decomp_router.decompose.network import one_thread
from decomp_router.decompose.tokens import PromptTokenizer

ARTEFACT = Path(str(files("decomp_router.decompose") / "artefact"))
LENGTHS = (64, 128, 512)
ASKS = (
    "Explain how a heat pump works",
    "list three makers of bicycle locks",
    "what is the capital of Peru",
    "write a short note to my landlord about the broken bell",
    "name a film with a lighthouse in it and say who directed it",
    "translate 'closed for repairs' into Polish",
)


def prompt_of(length: int, tokenizer: PromptTokenizer) -> str:
    """Asks side by side, cut to so many tokens."""
    words = " ".join(f"{i + 1}. {ask}." for i, ask in enumerate(ASKS * 20)).split(" ")
    low, high = 1, len(words)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (
            (middle, high) if len(tokenizer.encode(" ".join(words[:middle])).ids) <= length else (low, middle - 1)
        )
    return " ".join(words[:low])


def encoder_alone(folder: Path) -> onnxruntime.InferenceSession:
    """The shipped int8 network up to the last layer's output, without heads."""
    graph = onnx.load(str(ARTEFACT / "network.onnx"))
    last = [node.output[0] for node in graph.graph.node if node.name.startswith("/encoder/layers.")][-1]
    target = folder / "encoder.onnx"
    onnx.save(onnx.utils.Extractor(graph).extract_model(["ids", "layout"], [last]), str(target))
    return onnxruntime.InferenceSession(str(target), one_thread(), providers=["CPUExecutionProvider"])


def milliseconds(work: Callable[[], object]) -> float:
    """Wall time of one call."""
    begun = time.perf_counter()
    work()
    return 1e3 * (time.perf_counter() - begun)


def paired(decomposer: Decomposer, plain: onnxruntime.InferenceSession, length: int, repeats: int) -> dict[str, Any]:
    """Both arms in turn, each first every other time."""
    tokenizer = PromptTokenizer(ARTEFACT / "tokenizer.json")
    prompt = prompt_of(length, tokenizer)
    encoding = tokenizer.encode(prompt)
    feeds = {"ids": encoding.ids[None], "layout": encoding.layout[None]}
    arms = {"decompose": lambda: decomposer.read_anew(prompt), "plain": lambda: plain.run(None, feeds)}
    pairs = []
    for number in track(range(repeats + 3), f"{length} tokens"):
        order = sorted(arms, reverse=bool(number % 2))
        pairs.append({name: milliseconds(arms[name]) for name in order})
    pairs = pairs[3:]
    return {
        "tokens": len(encoding.ids),
        "subtasks": len(decomposer.read(prompt).plan.subtasks),
        "decompose_ms": round(median(p["decompose"] for p in pairs), 2),
        "plain_ms": round(median(p["plain"] for p in pairs), 2),
        "over_bar_ms": round(median(p["decompose"] - 1.15 * p["plain"] - 1.0 for p in pairs), 2),
        "ratio": round(float(np.median([p["decompose"] / p["plain"] for p in pairs])), 3),
    }


def peak_megabytes() -> float:
    """Peak resident memory of a fresh process (Linux's VmHWM) that reads short and long prompts."""
    code = (
        "from decomp_router.decompose.decomposer import load\n"
        "d = load()\n"
        "for n in (3, 30, 125, 500): d.read('Explain tides. ' * n)\n"
        "print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1])\n"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(answer.stdout) / 1024


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=41)
    parser.add_argument("--out", type=Path, default=Path("docs/results/latency.json"))
    arguments = parser.parse_args()
    decomposer = load()
    with tempfile.TemporaryDirectory() as folder:
        plain = encoder_alone(Path(folder))
        rows = [paired(decomposer, plain, length, arguments.repeats) for length in LENGTHS]
    size = sum(path.stat().st_size for path in ARTEFACT.iterdir())
    result = {
        "machine": machine(),
        "rows": rows,
        "peak_mb": round(peak_megabytes()),
        "artefact_mb": round(size / 1e6, 2),
    }
    arguments.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
