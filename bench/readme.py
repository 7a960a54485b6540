"""Figures in README and the model card, from docs/results: `python bench/readme.py` rewrites them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs/results"
BEGIN, END = "<!-- figures: made by bench/readme.py -->", "<!-- end of figures -->"
SETS = {"test": "test set", "adversarial": "adversarial sets", "development": "development set"}
FEWEST = 20
"""A language or class of fewer cases gets no row of its own."""


def pages() -> dict[Path, str]:
    """Each page that holds figures, as it should read."""
    figures = {ROOT / "README.md": [*_gauntlet(), "", *_fanout()], ROOT / "model/MODEL_CARD.md": _card()}
    return {path: _rewritten(path.read_text(encoding="utf-8"), lines) for path, lines in figures.items()}


def _rewritten(page: str, lines: list[str]) -> str:
    before, _, rest = page.partition(BEGIN)
    return before + "\n".join([BEGIN, "", *lines, "", END]) + rest.partition(END)[2]


def _card() -> list[str]:
    lines = [
        "| set | prompts | case accuracy | dangerous | of those that can go wrong | recall | edge F1 | span F1 |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, title in SETS.items():
        report = _load(f"gauntlet-{name}.json")
        lines.append(_card_row(f"**{title}**", report["total"]))
        lines += [
            _card_row(kind, total)
            for group in ("language", "class")
            for kind, total in report["groups"][group].items()
            if total["cases"] >= FEWEST
        ]
    for name in ("test", "adversarial"):
        title = f"{SETS[name]}, the artefact before, at the freeze"
        lines.append(_card_row(title, _load(f"gauntlet-{name}-freeze.json")["total"]))
    lines.append(_card_row("2,000 variants of the test set", _load("gauntlet-variants.json")["total"]))
    return [
        *lines,
        "",
        _turned(),
        "",
        *_lengths(),
        "",
        *_calibration(),
        "",
        *_latency(),
        "",
        *_agreement(),
        "",
        *_ablation(),
    ]


def _turned() -> str:
    """Variants that are dangerous though their prompt as written is not."""
    known = {case["id"] for case in _load("gauntlet-test.json")["cases"] if case["dangerous"]}
    cases = _load("gauntlet-variants.json")["cases"]
    turned = sum(bool(case["dangerous"]) and case["id"].partition("~")[0] not in known for case in cases)
    share = f"{turned} ({turned / len(cases):.2%})"
    return f"Of the {len(cases):,} variants, {share} turn dangerous though their prompt is not."


def _card_row(title: str, total: dict[str, Any]) -> str:
    recall = "-" if total["recall"] is None else f"{total['recall']:.1%}"
    edges, spans = ("-" if total[name] is None else f"{total[name]:.3f}" for name in ("edge_f1", "span_f1"))
    risk = "-" if not total["at_risk"] else f"{total['at_risk_rate']:.2%} (< {total['at_risk_upper']:.2%})"
    accuracy = f"{total['accuracy']:.1%} | {total['dangerous']} | {risk} | {recall} | {edges} | {spans} |"
    return f"| {title} | {total['cases']} | {accuracy}"


def _lengths() -> list[str]:
    counts = _load("gauntlet-test.json")["confusion"]["lengths"]
    lines = [
        "Length classes on the test set, rows as labelled, columns as read (sub-tasks whose span was found):",
        "",
        "| | up to 30 tokens | up to 160 | up to 400 | more |",
        "|---|---|---|---|---|",
    ]
    names = ("up to 30 tokens", "up to 160", "up to 400", "more")
    return lines + [f"| {name} | " + " | ".join(map(str, row)) + " |" for name, row in zip(names, counts, strict=True)]


def _calibration() -> list[str]:
    found = _load("calibration.json")
    return [
        f"Calibration: {found['cases']} prompts, {found['at_risk']} of which can go wrong; at the certainty chosen "
        f"({found['certainty']:.1f}) {found['dangerous']} of them are dangerous and {found['recall']:.1%} of the right "
        f"fan-outs are kept; bound {found['rate']:.1%} with {found['confidence']:.0%} confidence."
    ]


def _latency() -> list[str]:
    found = _load("latency.json")
    vnni = "with" if found["machine"]["vnni"] else "without"
    lines = [
        f"Latency on one thread of {found['machine']['cpu']} ({vnni} VNNI):",
        "",
        "| tokens | sub-tasks | whole decomposition, ms | plain forward pass, ms | over 1.15 x plain + 1 ms |",
        "|---|---|---|---|---|",
    ]
    sizes = f"Peak memory of a decomposing process {found['peak_mb']} MB; artefact {found['artefact_mb']} MB."
    rows = [
        f"| {row['tokens']} | {row['subtasks']} | {row['decompose_ms']:.1f} | {row['plain_ms']:.1f} "
        f"| {row['over_bar_ms']:+.1f} ms |"
        for row in found["rows"]
    ]
    return [*lines, *rows, "", sizes]


def _agreement() -> list[str]:
    found = _load("agreement.json")
    titles = {
        "int8_against_float32": "int8 against float32",
        "other_processor_against_this": "int8 on an emulated Haswell against int8 here",
    }
    lines = ["| plans | prompts | same plan | same fan-out | turned dangerous |", "|---|---|---|---|---|"]
    return lines + [
        f"| {title} | {found[key]['cases']} | {found[key]['same_plan']:.1%} | {found[key]['same_fanout']:.1%} "
        f"| {len(found[key]['turned_dangerous'])} |"
        for key, title in titles.items()
        if key in found
    ]


def _ablation() -> list[str]:
    lines = [
        "| variant | learnt from | judged on | recall at 0.5% dangerous | accuracy there | pair AUC | span F1 |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in _load("ablation.json"):
        recall = f"{row['recall']:.1%} | {row['accuracy']:.1%}" if "recall" in row else "- | -"
        spans = f"{row['span_f1']:.3f}" if "span_f1" in row else "-"
        lines.append(
            f"| {row['variant']} | {row['learnt']} prompts, {row['steps']} steps "
            f"| {row['development']} prompts | {recall} "
            f"| {row['pair_auc']:.4f} | {spans} |"
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
    rows, machine = _load("latency.json")["rows"], _load("latency.json")["machine"]
    times = ", ".join(f"{row['decompose_ms']:.0f} ms for {row['tokens']} tokens" for row in rows)
    return [*lines, "", f"A whole decomposition takes {times}, on one thread ({machine['cpu']})."]


def _fanout() -> list[str]:
    result = _load("fanout.json")
    speedup, machine = result["speedup"], result["machine"]
    return [
        f"What fanning out can win: {result['width']} branches at the same time against one linear answer of as many "
        f"tokens ({result['tokens']}), {result['model']} in the bundled engine on {machine['cores']} cores "
        f"({machine['cpu']}): {speedup['median']:.2f}x (median of {len(result['seconds'])} pairs, "
        f"{speedup['min']:.2f}x to {speedup['max']:.2f}x; `bench/fanout.py`)."
    ]


def _load(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / name).read_text())
    return found


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
