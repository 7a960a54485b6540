"""Figures in README and the model card, from docs/results: `python bench/readme.py` rewrites them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs/results"
BEGIN, END = "<!-- figures: made by bench/readme.py -->", "<!-- end of figures -->"
SETS = {"development": "development set", "test": "test set, written after training"}


def pages() -> dict[Path, str]:
    """Each page that holds figures, as it should read."""
    figures = {ROOT / "README.md": [*_gauntlet(), "", *_fanout()], ROOT / "model/MODEL_CARD.md": _card()}
    return {path: _rewritten(path.read_text(encoding="utf-8"), lines) for path, lines in figures.items()}


def _rewritten(page: str, lines: list[str]) -> str:
    before, _, rest = page.partition(BEGIN)
    return before + "\n".join([BEGIN, "", *lines, "", END]) + rest.partition(END)[2]


def _card() -> list[str]:
    lines = [
        "| set | prompts | case accuracy | dangerous | 95% bound | recall | edge F1 | span F1 |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, title in SETS.items():
        groups = _load(f"gauntlet-{name}.json")
        for kind, total in {
            title: groups["total"],
            **groups["groups"]["language"],
            **groups["groups"]["class"],
        }.items():
            recall = "-" if total["recall"] is None else f"{total['recall']:.1%}"
            edges = "-" if total["edge_f1"] is None else f"{total['edge_f1']:.3f}"
            lines.append(
                f"| {kind} | {total['cases']} | {total['accuracy']:.1%} | {total['dangerous']} "
                f"| {total['dangerous_upper']:.1%} | {recall} | {edges} | {total['span_f1']:.3f} |"
            )
    return lines


def _gauntlet() -> list[str]:
    lines = [
        '| prompts | case accuracy | dangerous false parallels | 95% bound | recall | baseline "never split" |',
        "|---|---|---|---|---|---|",
    ]
    for name, title in SETS.items():
        report = _load(f"gauntlet-{name}.json")
        total, never = report["total"], report["baselines"]["never split"]
        dangerous = f"{total['dangerous']} ({total['dangerous_rate']:.1%}) | {total['dangerous_upper']:.1%}"
        right = f"{total['accuracy']:.1%} | {dangerous} | {total['recall']:.1%}"
        lines.append(f"| {title}, {total['cases']} | {right} | {never['accuracy']:.1%} |")
    milliseconds = _load("gauntlet-development.json")["milliseconds"]
    return [*lines, "", f"One pass takes {milliseconds['median']:.0f} ms (median) on one thread of a shared CPU."]


def _fanout() -> list[str]:
    result = _load("fanout.json")
    speedup, machine = result["speedup"], result["machine"]
    return [
        f"What fanning out can win: {result['width']} branches at the same time against one linear answer of as many "
        f"tokens ({result['tokens']}), {result['model']} in the bundled NumPy engine on {machine['cores']} cores "
        f"({machine['cpu']}): {speedup['median']:.2f}x (median of {len(result['seconds'])} pairs, "
        f"{speedup['min']:.2f}x to {speedup['max']:.2f}x; `bench/fanout.py`)."
    ]


def _load(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / name).read_text())
    return found


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
