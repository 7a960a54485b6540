"""Results as rows with llama-bench's and llama-batched-bench's names, and rows as text."""

import csv
import io
import json
from dataclasses import dataclass
from statistics import fmean, stdev

from pascal_engine.engine import Engine
from pascal_engine.tools.bench.workload import Case, Timing

Row = dict[str, object]

_BATCHED_COLUMNS = {
    "PP": ("pp", ""),
    "TG": ("tg", ""),
    "B": ("pl", ""),
    "N_KV": ("n_kv", ""),
    "T_PP s": ("t_pp", ".3f"),
    "S_PP t/s": ("speed_pp", ".2f"),
    "T_TG s": ("t_tg", ".3f"),
    "S_TG t/s": ("speed_tg", ".2f"),
    "T s": ("t", ".3f"),
    "S t/s": ("speed", ".2f"),
}


@dataclass(frozen=True)
class Subject:
    """What was measured."""

    engine: Engine
    backend: str
    threads: int
    key_type: str
    value_type: str

    def fields(self) -> Row:
        info = self.engine.info
        return {
            "model_filename": info.path,
            "model_type": info.name,
            "model_size": info.size_bytes,
            "model_n_params": info.n_parameters,
            "backends": self.backend,
            "n_threads": self.threads,
            "type_k": self.key_type,
            "type_v": self.value_type,
        }

    def columns(self) -> dict[str, str]:
        info = self.engine.info
        shown = {
            "model": info.name,
            "size": f"{info.size_bytes / 2**20:.2f} MiB"
            if info.size_bytes < 2**30
            else f"{info.size_bytes / 2**30:.2f} GiB",
            "params": f"{info.n_parameters / 1e6:.2f} M"
            if info.n_parameters < 1e9
            else f"{info.n_parameters / 1e9:.2f} B",
            "backend": self.backend,
            "threads": str(self.threads),
        }
        kinds = {"type_k": self.key_type, "type_v": self.value_type}
        return shown | {name: kind for name, kind in kinds.items() if kind != "f16"}


@dataclass(frozen=True)
class Single:
    """Repetitions of a case of one phase, as llama-bench shows it: mean and standard deviation of tokens a second."""

    case: Case
    timings: list[Timing]

    @property
    def _seconds(self) -> list[float]:
        return [timing.prefill_s if self.case.n_prompt else timing.decode_s for timing in self.timings]

    @property
    def _speeds(self) -> list[float]:
        return [(self.case.n_prompt or self.case.n_gen) / seconds for seconds in self._seconds]

    def fields(self) -> Row:
        nanoseconds = [round(1e9 * seconds) for seconds in self._seconds]
        return {
            "n_prompt": self.case.n_prompt,
            "n_gen": self.case.n_gen,
            "n_depth": self.case.depth,
            "avg_ns": round(fmean(nanoseconds)),
            "stddev_ns": round(_spread(nanoseconds)),
            "avg_ts": fmean(self._speeds),
            "stddev_ts": _spread(self._speeds),
            "samples_ns": nanoseconds,
            "samples_ts": self._speeds,
        }

    def columns(self) -> dict[str, str]:
        case = self.case
        name = f"pp{case.n_prompt}" if case.n_prompt else f"tg{case.n_gen}"
        test = f"{name} @ d{case.depth}" if case.depth else name
        return {"test": test, "t/s": f"{fmean(self._speeds):.2f} ± {_spread(self._speeds):.2f}"}


@dataclass(frozen=True)
class Batched:
    """Repetitions of a case of both phases and several sequences, as llama-batched-bench shows it: mean seconds, and
    tokens a second of all sequences together. The digests are those of the first repetition."""

    case: Case
    timings: list[Timing]

    def fields(self) -> Row:
        case = self.case
        t_pp, t_tg = (fmean(getattr(timing, name) for timing in self.timings) for name in ("prefill_s", "decode_s"))
        n_pp, n_tg = case.parallel * case.n_prompt, case.parallel * case.n_gen
        return {
            "pp": case.n_prompt,
            "tg": case.n_gen,
            "pl": case.parallel,
            "n_kv": n_pp + n_tg,
            "t_pp": t_pp,
            "speed_pp": n_pp / t_pp,
            "t_tg": t_tg,
            "speed_tg": n_tg / t_tg,
            "t": t_pp + t_tg,
            "speed": (n_pp + n_tg) / (t_pp + t_tg),
            "tokens_sha256": self.timings[0].tokens_sha256,
            "logits_sha256": self.timings[0].logits_sha256,
        }

    def columns(self) -> dict[str, str]:
        fields = self.fields()
        return {label: f"{fields[name]:{form}}" for label, (name, form) in _BATCHED_COLUMNS.items()}


def markdown(rows: list[dict[str, str]]) -> str:
    """A table whose first column is text; it also reads well as it is."""
    lines = _aligned(rows)
    rule = ["-" * len(lines[0][0]), *(f"{'-' * (len(cell) - 1)}:" for cell in lines[0][1:])]
    return "\n".join(f"| {' | '.join(line)} |" for line in (lines[0], rule, *lines[1:]))


def plain(rows: list[dict[str, str]]) -> str:
    """A table of blanks alone."""
    return "\n".join("  ".join(line).rstrip() for line in _aligned(rows))


def to_csv(rows: list[Row]) -> str:
    """Without lists of samples, as llama-bench's."""
    out = io.StringIO()
    flat = [{name: value for name, value in row.items() if not isinstance(value, list)} for row in rows]
    writer = csv.DictWriter(out, flat[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return out.getvalue().rstrip("\n")


def to_json(rows: list[Row]) -> str:
    return json.dumps(rows, indent=2)


def _aligned(rows: list[dict[str, str]]) -> list[list[str]]:
    """The head and all rows, cells padded to their column's width: the first column to the left, the others right."""
    lines = [list(rows[0]), *(list(row.values()) for row in rows)]
    widths = [max(2, *(len(line[index]) for line in lines)) for index in range(len(lines[0]))]
    return [
        [
            cell.rjust(width) if index else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        for line in lines
    ]


def _spread(values: list[int] | list[float]) -> float:
    return stdev(values) if len(values) > 1 else 0.0
