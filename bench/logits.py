"""How near the engine's logits are to those of transformers in float32: writes docs/results/logits.json.

    PYTHONPATH=. python bench/logits.py                   three architectures, random weights of seeds 1, 2 and 3
    PYTHONPATH=. python bench/logits.py qwen35 FOLDER     one architecture, and a model that transformers can open

Needs the `train` extra. Weights are float32, keys and values too. Each context is computed twice: prefilled as a whole,
where the logits at the end of every block are compared, and all but its last 32 tokens prefilled and those decoded one
by one. The figure is the largest difference of any logit over the largest logit of the reference.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
import transformers
from machine import machine
from rich.console import Console

from pascal_engine.backend.batch import BLOCK, Batch
from pascal_engine.backend.cpu import CpuBackend, physical_cores
from pascal_engine.backend.protocol import Backend
from pascal_engine.backend.reference import ReferenceBackend
from pascal_engine.gguf import ModelFile
from pascal_engine.hybrid.model import Model
from pascal_engine.memory import StatePools
from tests.engine.convert import ARCHITECTURES, write_gguf
from tests.engine.make_fixtures import Sizes, make_model

CONTEXTS = (128, 1024, 4096)
REFERENCE_UP_TO = 1024
DECODED = 32
BAR = 1e-4
SIZES = Sizes(
    layers=8, hidden=128, head_dim=256, rotated=0.25, sections=(11, 11, 10), value_heads=4, delta_dim=128, context=8192
)
"""Heads as large as those of published models, and little else."""

Logits = dict[int, npt.NDArray[np.float32]]
"""Logits [vocabulary] of the token that follows so many."""

CONSOLE = Console(stderr=True)


def models(names: list[str], seeds: list[int]) -> Iterator[tuple[str, torch.nn.Module]]:
    """The models that are asked for, each with a name for the table."""
    for name in names:
        if name in ARCHITECTURES.values():
            yield from ((f"{name}, seed {seed}", make_model(name, seed, SIZES)) for seed in seeds)
        else:
            model = transformers.AutoModelForCausalLM.from_pretrained(name, dtype=torch.float32)
            yield Path(name).name, model.eval()


def expected(model: torch.nn.Module, tokens: list[int]) -> npt.NDArray[np.float32]:
    """Logits [tokens, vocabulary], all at once and so with no cache of transformers."""
    with torch.no_grad():
        logits: npt.NDArray[np.float32] = model(torch.tensor([tokens]), use_cache=False).logits[0].numpy()
    return logits


def prefill(model: Model, pools: StatePools, tokens: list[int]) -> Logits:
    """Logits at the end of every block."""
    seen = {}
    for start in range(0, len(tokens), BLOCK):
        chunk = tokens[start : start + BLOCK]
        seen[start + len(chunk)] = model.forward(Batch.prefill(chunk, start, 0), pools)[0]
    return seen


def decode(model: Model, pools: StatePools, tokens: list[int]) -> Logits:
    """Logits of the last tokens, one by one, the others prefilled."""
    n_prefilled = len(tokens) - DECODED
    prefill(model, pools, tokens[:n_prefilled])
    return {
        place + 1: model.forward(Batch.decode([tokens[place]], [place], [0]), pools)[0]
        for place in range(n_prefilled, len(tokens))
    }


def worst(seen: Logits, reference: npt.NDArray[np.float32]) -> float:
    """The largest difference over the largest reference."""
    difference = max(float(np.abs(logits - reference[count - 1]).max()) for count, logits in seen.items())
    return difference / float(np.abs(reference).max())


def compare(model: torch.nn.Module, backends: dict[str, Backend], contexts: list[int]) -> Iterator[dict[str, object]]:
    """One row for each backend and context."""
    rng = np.random.default_rng(0)
    tokens = rng.integers(0, model.config.vocab_size, max(contexts)).tolist()
    reference = expected(model, tokens)  # causal: the beginning of a long context is the short one
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.gguf"
        write_gguf(path, model, lambda writer: None, max(contexts))
        for name, backend in backends.items():
            engine = Model.load(ModelFile(path), backend, model.config.vocab_size, max(contexts))
            for context in contexts:
                if name == "reference" and context > REFERENCE_UP_TO:
                    continue
                row: dict[str, object] = {"backend": name, "context": context}
                for phase, run in (("prefill", prefill), ("decode", decode)):
                    pools = StatePools(backend, engine.params, 1, context, "f32", "f32")
                    row[phase] = worst(run(engine, pools, tokens[:context]), reference[:context])
                yield row


def main() -> int:
    """Exit code 1 if a figure is above the bar."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["qwen3next", "qwen35", "qwen35moe"], metavar="MODEL")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--contexts", type=int, nargs="+", default=CONTEXTS)
    parser.add_argument("--threads", type=int, default=physical_cores())
    parser.add_argument("--out", type=Path, default=Path("docs/results/logits.json"))
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    backends: dict[str, Backend] = {"cpu": CpuBackend(arguments.threads), "reference": ReferenceBackend()}
    rows = []
    began = time.perf_counter()
    for name, model in models(arguments.models, arguments.seeds):
        for row in compare(model, backends, list(arguments.contexts)):
            rows.append({"model": name, **row})
            CONSOLE.print(f"{time.perf_counter() - began:6.0f} s  {rows[-1]}", soft_wrap=True)
    figures = [float(row[phase]) for row in rows for phase in ("prefill", "decode")]
    result = {
        "machine": machine(),
        "transformers": transformers.__version__,
        "torch": torch.__version__,
        "sizes of models of seeds": vars(SIZES),
        "bar": BAR,
        "worst": max(figures),
        "rows": rows,
    }
    arguments.out.write_text(json.dumps(result, indent=1) + "\n")
    return int(max(figures) > BAR)


if __name__ == "__main__":
    raise SystemExit(main())
