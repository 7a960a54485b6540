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
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from machine import machine
from rich.console import Console
from rich.progress import track
from rich.table import Table

from pascal_engine.backend.batch import Batch
from pascal_engine.backend.cpu import CpuBackend, _native
from pascal_engine.gguf import ModelFile
from pascal_engine.hybrid.model import Model
from pascal_engine.memory import StatePools

CHUNK, CHUNKS, BAR = 256, 8, 1e-2
REACH = 16.0
"""How far below the best logit the peer's file reaches."""
TEXT = (
    "the river runs slowly through old town and in evening lights of houses shine on water people sit front talk about "
    "day wait for night to come what would you like know there are many questions that a short answer cannot settle "
    "write function takes list returns longest one explain each step then give an example compare two proposals"
)

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class PeerLogits:
    """`tokens` [chunks, CHUNK], and for the positions from the middle of a chunk to its last but one the packed
    log-probabilities [chunks, positions, 4 + vocabulary, rounded up]: a float32 step, a float32 least, and steps."""

    tokens: npt.NDArray[np.int32]
    packed: npt.NDArray[np.uint16]
    n_vocab: int

    @classmethod
    def make(cls, program: Path, model: Path, n_threads: int) -> PeerLogits:
        with tempfile.TemporaryDirectory() as folder:
            text, out = Path(folder) / "text", Path(folder) / "logits"
            text.write_text(" ".join(np.random.default_rng(0).choice(TEXT.split(), 8 * CHUNK * CHUNKS)))
            command = [str(program), "-m", str(model), "-f", str(text), "--save-all-logits", str(out)]
            command += ["-c", str(CHUNK), "-b", str(CHUNK), "--chunks", str(CHUNKS), "-t", str(n_threads)]
            command += ["-ctk", "f32", "-ctv", "f32", "-fa", "off"]
            subprocess.run(command, capture_output=True, check=True)
            return cls._read(out.read_bytes())

    @classmethod
    def _read(cls, data: bytes) -> PeerLogits:
        n_ctx, n_vocab, n_chunks = np.frombuffer(data, np.int32, 3, len(b"_logits_"))
        at = len(b"_logits_") + 12
        tokens = np.frombuffer(data, np.int32, n_chunks * n_ctx, at).reshape(n_chunks, n_ctx)
        packed = np.frombuffer(data, np.uint16, offset=at + tokens.nbytes)
        width = 4 + (n_vocab + 1) // 2 * 2
        return cls(tokens, packed.reshape(n_chunks, n_ctx - 1 - n_ctx // 2, width), int(n_vocab))

    def log_probabilities(self) -> F32:
        """Those of each position of the second half, chunk after chunk for each: [positions * chunks, vocabulary]."""
        rows = np.ascontiguousarray(self.packed.swapaxes(0, 1)).reshape(-1, self.packed.shape[-1])
        step, least = rows[:, :4].copy().view(np.float32).T[..., None]
        return _log_softmax(step * rows[:, 4 : 4 + self.n_vocab] + least)


def compare(path: Path, peer: PeerLogits, n_threads: int) -> dict[str, object]:
    """One row of the results."""
    theirs = peer.log_probabilities()
    ours = {name: our_log_probabilities(path, peer, n_threads, name) for name in _native.instruction_sets()}
    best, plain = ours[_native.instruction_sets()[-1]], ours["portable"]
    found = divergence(theirs, best)
    return {
        "model": path.name,
        "positions": len(found),
        "mean_kl": float(f"{found.mean():.3g}"),
        "median_kl": float(f"{np.median(found):.3g}"),
        "same_top": round(float(np.mean(best.argmax(axis=1) == theirs.argmax(axis=1))), 4),
        "rounding_mean_kl": float(f"{divergence(best, plain).mean():.3g}"),
        "rounding_same_top": round(float(np.mean(best.argmax(axis=1) == plain.argmax(axis=1))), 4),
    }


def divergence(theirs: F32, ours: F32) -> F64:
    """For each row of log-probabilities [rows, vocabulary]."""
    kl: F64 = (np.exp(theirs) * (theirs - ours)).sum(axis=1, dtype=np.float64)
    return kl


def our_log_probabilities(path: Path, peer: PeerLogits, n_threads: int, instructions: str) -> F32:
    """As `PeerLogits.log_probabilities`; the chunks are sequences of one batch, a token each at a time."""
    _native.set_instructions(instructions)
    backend = CpuBackend(n_threads)
    n_chunks, n_ctx = peer.tokens.shape
    model = Model.load(ModelFile(path), backend, peer.n_vocab, n_ctx)
    pools = StatePools(backend, model.params, n_chunks, n_ctx)
    rows = []
    for position in track(range(n_ctx - 1), f"{path.name}, {instructions}", console=Console(stderr=True)):
        batch = Batch.decode(peer.tokens[:, position].tolist(), [position] * n_chunks, list(range(n_chunks)))
        logits = model.forward(batch, pools)
        if position >= n_ctx // 2:
            rows.append(_log_softmax(np.maximum(logits, logits.max(axis=1, keepdims=True) - REACH)))
    return np.concatenate(rows)


def _log_softmax(logits: F32) -> F32:
    """Over the last axis."""
    shifted = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)
    found: F32 = (shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))).astype(np.float32)
    return found


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", type=Path, required=True, help="llama.cpp's llama-perplexity")
    parser.add_argument("--models", type=Path, nargs="+", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("docs/results/kl.json"))
    arguments = parser.parse_args()
    rows = [
        compare(path, PeerLogits.make(arguments.peer, path, arguments.threads), arguments.threads)
        for path in arguments.models
    ]
    arguments.out.write_text(json.dumps({"machine": machine(), "bar": BAR, "rows": rows}, indent=1) + "\n")
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*map(str, row.values()))
    Console().print(table)


if __name__ == "__main__":
    main()
