"""The two sides of a comparison, each run as processes of its own build."""

import json
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pascal_engine.errors import ModelError


@dataclass(frozen=True)
class Workload:
    """Tokens of each prompt, tokens that each sequence decodes, sequences."""

    n_prompt: int
    n_gen: int
    parallel: int


@dataclass(frozen=True)
class Sample:
    """Tokens a second of one process, and digests of what it computed."""

    prefill: float
    decode: float
    tokens_sha256: str
    logits_sha256: str


@dataclass(frozen=True)
class Arm:
    """`python` is the command of an interpreter that finds the build."""

    name: str
    python: tuple[str, ...]
    model: str
    flags: tuple[str, ...]

    @classmethod
    def parse(cls, name: str, python: str | None, model: str | None, flags: str) -> "Arm":
        """From texts as on a command line; `-m` among the flags goes before `model`. Raises ValueError."""
        words, rest = iter(shlex.split(flags)), []
        for word in words:
            if word in ("-m", "--model"):
                model = next(words, None)
            else:
                rest.append(word)
        if model is None:
            raise ValueError("there is no model; give -m FILE")
        return cls(name, tuple(shlex.split(python or shlex.quote(sys.executable))), model, tuple(rest))

    def measure(self, workload: Workload, seed: int) -> Sample:
        """One process that loads the model and times the workload once; its failure is a `ModelError`."""
        sizes = ("-npp", workload.n_prompt, "-ntg", workload.n_gen, "-npl", workload.parallel, "--seed", seed, "-r", 1)
        (row,) = self._json("bench", "-m", self.model, *map(str, sizes), "--json")
        return Sample(row["speed_pp"], row["speed_tg"], row["tokens_sha256"], row["logits_sha256"])

    def save_logits(self, text: Path, n_chunks: int, out: Path) -> None:
        """Has this side's logits of a text written to `out`."""
        self._run("kld", self.model, "--text", str(text), "--chunks", str(n_chunks), "--save", str(out))

    def divergence_from(self, logits: Path) -> dict[str, float]:
        """How far this side is from saved logits; the names are those of `Divergence.to_json`."""
        found: dict[str, float] = self._json("kld", str(logits), self.model, "--json")
        return found

    def _json(self, *arguments: str) -> Any:  # noqa: ANN401
        said = self._run(*arguments)
        try:
            return json.loads(said)
        except ValueError as error:
            raise ModelError(
                f"arm {self.name}: its build gave no result; give the Python of an engine's build."
            ) from error

    def _run(self, *arguments: str) -> str:
        command = [*self.python, "-m", "pascal_engine.cli", *arguments, *self.flags]
        try:
            ended = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise ModelError(
                f"arm {self.name}: '{self.python[0]}' cannot be run ({error.strerror}); give another Python."
            ) from error
        if ended.returncode:
            lines = ended.stderr.strip().splitlines() or [f"its process ended with code {ended.returncode}"]
            raise ModelError(f"arm {self.name}: {lines[-1]}")
        return ended.stdout
