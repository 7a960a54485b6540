"""Labelled cases: the gauntlet's JSONL format (version 1), the older schema, and their checks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from decomp_router.plan import Clause, Plan, Subtask


class CaseError(ValueError):
    """A case that breaks the format; the message names the file, the line and what to mend."""


@dataclass(frozen=True)
class Case:
    """One labelled prompt. `truth` is absent in the older schema, which labels `fanout_expected` alone."""

    id: str
    lang: str
    prompt: str
    fanout_expected: bool
    truth: Plan | None
    tags: tuple[str, ...] = ()
    context: tuple[tuple[str, str], ...] = ()
    """Earlier messages as (role, content); `prompt` is the last user message."""

    @property
    def cls(self) -> str:
        """Class of the labelled DAG; "unlabelled" in the older schema."""
        return self.truth.cls if self.truth else "unlabelled"

    @property
    def can_go_wrong(self) -> bool:
        """Serial, or holding an edge: the cases in which a false parallel is possible."""
        return not self.fanout_expected or (self.truth is not None and bool(self.truth.graph.edges))


def load(path: Path) -> list[Case]:
    """Cases of a `.jsonl` file or of a file in the older schema. Raises CaseError, OSError."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".jsonl" and (older := _older_schema(path, text)) is not None:
        return older
    return list(_lines(path, text))


def dump(cases: Iterable[Case], path: Path) -> None:
    """Write cases as JSONL, one object a line."""
    lines = (json.dumps(to_json(case), ensure_ascii=False) for case in cases)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def _lines(path: Path, text: str) -> Iterator[Case]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield from_json(json.loads(line))
        except (ValueError, KeyError, TypeError, AssertionError) as error:
            raise CaseError(f"{path}:{number}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    return f"field {error} is missing" if isinstance(error, KeyError) else str(error)


def _older_schema(path: Path, text: str) -> list[Case] | None:
    try:
        data = json.loads(text)
    except ValueError:
        return None
    if not isinstance(data, dict) or "cases" not in data:
        return None
    try:
        return [
            Case(
                id=str(item["id"]),
                lang=str(item.get("lang", "?")),
                prompt=item["prompt"],
                fanout_expected=bool(item["fanout_expected"]),
                truth=None,
                tags=(str(item["class"]), *(["adversarial"] if item.get("adversarial") else [])),
            )
            for item in data["cases"]
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise CaseError(f"{path}: {_reason(error)}") from error


def from_json(item: dict[str, Any]) -> Case:
    """One JSON object to a Case; checks spans, the DAG, and that the stated class is the DAG's."""
    prompt = item["prompt"]
    subtasks = tuple(
        Subtask(t["id"], *_span(prompt, t), tuple(t.get("deps", ())), t.get("length", 1)) for t in item["subtasks"]
    )
    clauses = tuple(Clause(*_span(prompt, c), c["role"], c.get("target")) for c in item.get("clauses", ()))
    truth = Plan(
        prompt,
        tuple(sorted(subtasks, key=lambda task: task.start)),
        tuple(sorted(clauses, key=lambda clause: clause.start)),
    )
    _check(item, truth)
    return Case(
        id=item["id"],
        lang=item["lang"],
        prompt=prompt,
        fanout_expected=truth.fans_out,
        truth=truth,
        tags=tuple(item.get("tags", ())),
        context=tuple((m["role"], m["content"]) for m in item.get("context", ())),
    )


def _span(prompt: str, part: dict[str, Any]) -> tuple[int, int]:
    if "quote" not in part:
        return part["start"], part["end"]
    quote = part["quote"]
    found = prompt.count(quote)
    if found != 1:
        raise CaseError(f"quote {quote!r} occurs {found} times in the prompt, once is needed")
    start = prompt.index(quote)
    return start, start + len(quote)


def _check(item: dict[str, Any], truth: Plan) -> None:
    stated = {"class": truth.cls, "fanout_expected": truth.fans_out}
    for key, derived in stated.items():
        if item.get(key, derived) != derived:
            raise CaseError(f"case {item['id']}: {key} is {item[key]!r}, its DAG says {derived!r}")
    for before, after in zip(truth.spans, truth.spans[1:], strict=False):
        if after.start < before.end:
            raise CaseError(f"case {item['id']}: {truth.text(before)!r} and {truth.text(after)!r} overlap")
    targets = {"each", "joint", *(task.id for task in truth.subtasks)}
    for clause in truth.clauses:
        if clause.role == "constraint" and clause.target not in targets:
            raise CaseError(f"case {item['id']}: constraint target {clause.target!r} is none of {sorted(targets)}")
        if clause.target == "joint" and truth.fans_out:
            raise CaseError(f"case {item['id']}: a joint constraint serialises, but its DAG fans out")


def to_json(case: Case) -> dict[str, Any]:
    """A labelled case as its JSON object; quotes where they occur once, offsets elsewhere."""
    assert case.truth is not None, "cases of the older schema are read only"
    truth = case.truth
    subtasks = [{"id": t.id, **_place(truth, t), "deps": list(t.deps), "length": t.length} for t in truth.subtasks]
    clauses = [
        {**_place(truth, c), "role": c.role, **({"target": c.target} if c.target else {})} for c in truth.clauses
    ]
    item: dict[str, Any] = {"id": case.id, "lang": case.lang, "class": case.cls, "tags": list(case.tags)}
    if case.context:
        item["context"] = [{"role": role, "content": content} for role, content in case.context]
    return item | {
        "prompt": case.prompt,
        "subtasks": subtasks,
        "clauses": clauses,
        "fanout_expected": case.fanout_expected,
        "substantial": truth.substantial,
    }


def _place(truth: Plan, span: Subtask | Clause) -> dict[str, Any]:
    text = truth.text(span)
    return {"quote": text} if truth.prompt.count(text) == 1 else {"start": span.start, "end": span.end}
