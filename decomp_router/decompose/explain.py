"""Why a prompt is read as it is: what each part was taken for, each pair's score, the evidence."""

from __future__ import annotations

import numpy as np
from rich.box import SIMPLE
from rich.console import Group
from rich.table import Table
from rich.text import Text

from decomp_router.decompose.decomposer import Decomposer
from decomp_router.decompose.labels import TAG_INDEX
from decomp_router.decompose.network import Scores
from decomp_router.decompose.reading import Reading, independence, pair_logits, probability, softmax
from decomp_router.decompose.segments import Segment, segments
from decomp_router.decompose.thresholds import Thresholds
from decomp_router.decompose.tokens import Encoding
from decomp_router.decompose.windows import Window


def explanation(decomposer: Decomposer, prompt: str) -> Group:
    """Tables for a terminal: one of parts and one of pairs for each pass over the prompt, one of the evidence."""
    looked = decomposer.look(prompt)
    if looked is None:
        return Group(Text("the network was not asked"))
    encoding, found = looked
    tables: list[Table] = []
    for window in found:
        tables += _of_window(prompt, encoding, window)
    return Group(*tables, _evidence(decomposer.read(prompt), decomposer.thresholds))


def _of_window(prompt: str, encoding: Encoding, window: Window) -> list[Table]:
    spans, scores = window.spans(encoding), window.scores
    tags = softmax(scores.tags[1 : len(spans) + 1])
    parts = segments(tags, spans)
    table = Table("part", "role", "mean probability", title="what each part was taken for", box=SIMPLE)
    number = 0
    for part in parts:
        number += part.tag == "task"
        columns = [TAG_INDEX["task-begin"], TAG_INDEX["task"]] if part.tag == "task" else [TAG_INDEX[part.tag]]
        sure = tags[part.first : part.last + 1, columns].sum(axis=1).mean()
        role = f"t{number}" if part.tag == "task" else part.tag
        table.add_row(Text(_short(prompt[spans[part.first][0] : spans[part.last][1]])), role, f"{sure:.3f}")
    return [table, *_pairs(scores, [part for part in parts if part.tag == "task"])]


def _pairs(scores: Scores, tasks: list[Segment]) -> list[Table]:
    if len(tasks) < 2:
        return []
    logits = pair_logits(scores, tasks)
    table = Table("pair", "independent", "second needs first", "first needs second", title="pairs", box=SIMPLE)
    for i in range(len(tasks)):
        for j in range(i + 1, len(tasks)):
            free = independence(logits[i, j], logits[j, i])
            needs = [np.exp(min(float(logit), 50.0)) for logit in (logits[i, j], logits[j, i])]
            shares = [probability(free) * odds for odds in (1.0, *needs)]
            table.add_row(f"t{i + 1}, t{j + 1}", *(f"{share:.4f}" for share in shares))
    return [table]


def _evidence(reading: Reading, thresholds: Thresholds) -> Table:
    table = Table("evidence", "log-odds", title="for and against a fan-out", box=SIMPLE)
    if reading.evidence is None:
        table.add_row("nothing could run at the same time", "")
    else:
        table.add_row("guard: something may run at the same time", f"{reading.evidence.guard:.2f}")
        table.add_row("weakest pair: independent", f"{reading.evidence.weakest:.2f}")
        table.add_row("faintest ask: a sub-task of its own", f"{reading.evidence.faintest:.2f}")
        table.add_row("all three", f"{reading.evidence.certainty:.2f}")
    table.add_row("needed", f"{thresholds.certainty:.2f}")
    table.caption = (
        f"a pair is independent from {thresholds.independent:.2f} up, a constraint joint from {thresholds.joint:.2f} up"
    )
    return table


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 60 else flat[:57] + "..."
