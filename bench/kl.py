"""How far the engine's logits are from llama.cpp's: `python bench/kl.py --peer .../llama-perplexity --models FILES`.

For each file the mean Kullback-Leibler divergence of ours from the peer's, and how often both like the same token
best, on the second halves of eight chunks of 256 tokens, keys and values in f32; writes docs/results/kl.json. Beside it
stands the same of our portable kernels from our AVX2 ones, which differ by nothing but the order of sums: what rounding
alone makes of a model, by activations that round to another step and tokens that go to another expert.

`bench/engine.py` says where the peer comes from; here its target is `llama-perplexity`, whose file of all
log-probabilities (16 bits each, none further than 16 below the best) also holds the tokens. Small models:
`tests/engine/make_fixtures.py`, with the key `rope.dimension_sections` (for qwen35, qwen35moe) and without the block
for multi-token prediction, writes what llama.cpp loads and its `llama-quantize IN OUT Q8_0` quantises; for Q4_K_M give
the configurations a hidden size of 256.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from machine import machine
from rich.console import Console
from rich.progress import track
from rich.table import Table

from pascal_engine.backend.cpu import _native
from pascal_engine.engine import Engine, EngineOptions
from pascal_engine.tools.kld import divergence
from pascal_engine.tools.kld.saved import SavedLogits, save
from pascal_engine.tools.kld.sources import ModelSource

CHUNK, CHUNKS, BAR = 256, 8, 1e-2
TEXT = (
    "the river runs slowly through old town and in evening lights of houses shine on water people sit front talk about "
    "day wait for night to come what would you like know there are many questions that a short answer cannot settle "
    "write function takes list returns longest one explain each step then give an example compare two proposals"
)


def compare(path: Path, peer: Path, n_threads: int) -> dict[str, object]:
    """One row of the results."""
    options = EngineOptions(CHUNK, key_type="f32", value_type="f32", cache_bytes=0, threads=n_threads)
    with tempfile.TemporaryDirectory() as folder:
        theirs = their_logits(path, peer, n_threads, Path(folder))
        ours, portable = ModelSource(Engine.open(path, options), theirs.chunks), Path(folder) / "portable"
        _native.set_instructions("portable")
        save(ours, portable, lambda done, total: None)
        _native.set_instructions(_native.instruction_sets()[-1])
        found, rounding = divergence.compare(theirs, ours), divergence.compare(ours, SavedLogits.open(portable))
    return {
        "model": path.name,
        "positions": len(found.kl),
        "mean_kl": float(f"{found.kl.mean():.3g}"),
        "median_kl": float(f"{np.median(found.kl):.3g}"),
        "same_top": round(float(found.same_top.mean()), 4),
        "rounding_mean_kl": float(f"{rounding.kl.mean():.3g}"),
        "rounding_same_top": round(float(rounding.same_top.mean()), 4),
    }


def their_logits(model: Path, program: Path, n_threads: int, folder: Path) -> SavedLogits:
    """Those of the peer, on a text of random words."""
    text, out = folder / "text", folder / "logits"
    text.write_text(" ".join(np.random.default_rng(0).choice(TEXT.split(), 8 * CHUNK * CHUNKS)))
    command = [str(program), "-m", str(model), "-f", str(text), "--save-all-logits", str(out)]
    command += ["-c", str(CHUNK), "-b", str(CHUNK), "--chunks", str(CHUNKS), "-t", str(n_threads)]
    command += ["-ctk", "f32", "-ctv", "f32", "-fa", "off"]
    subprocess.run(command, capture_output=True, check=True)
    return SavedLogits.open(out)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", type=Path, required=True, help="llama.cpp's llama-perplexity")
    parser.add_argument("--models", type=Path, nargs="+", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("docs/results/kl.json"))
    arguments = parser.parse_args()
    rows = [
        compare(path, arguments.peer, arguments.threads)
        for path in track(arguments.models, "models", console=Console(stderr=True))
    ]
    arguments.out.write_text(json.dumps({"machine": machine(), "bar": BAR, "rows": rows}, indent=1) + "\n")
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*map(str, row.values()))
    Console().print(table)


if __name__ == "__main__":
    main()
