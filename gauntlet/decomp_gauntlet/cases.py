"""Labelled cases: the gauntlet's JSONL format (version 1), the older schema, and their checks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from decomp_router.plan import ROLES, Clause, Plan, Role, Subtask


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
        except (ValueError, AssertionError, RecursionError) as error:
            raise CaseError(f"{path}:{number}: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    return f"field {field}: {first['msg']}" if field else first["msg"]


def _older_schema(path: Path, text: str) -> list[Case] | None:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or not isinstance(data.get("cases"), list):
        return None
    try:
        return [_older(_OlderJson.model_validate(item)) for item in data["cases"]]
    except ValidationError as error:
        raise CaseError(f"{path}: {_reason(error)}") from error


def _older(raw: _OlderJson) -> Case:
    tags = (raw.cls, *(["adversarial"] if raw.adversarial else []))
    return Case(str(raw.id), raw.lang, raw.prompt, raw.fanout_expected, None, tags)


class _Json(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")


class _SpanJson(_Json):
    quote: str | None = None
    start: int = 0
    end: int = 0

    def place(self, prompt: str) -> tuple[int, int]:
        """Code points, end exclusive; a quote occurs once."""
        if self.quote is None:
            return self.start, self.end
        found = prompt.count(self.quote)
        if found != 1:
            raise CaseError(f"quote {self.quote!r} occurs {found} times in the prompt, once is needed")
        start = prompt.index(self.quote)
        return start, start + len(self.quote)


class _SubtaskJson(_SpanJson):
    id: str
    deps: list[str] = []
    length: int = 1


class _ClauseJson(_SpanJson):
    role: str
    target: str | None = None


class _MessageJson(_Json):
    role: str
    content: str


class _CaseJson(_Json):
    id: str
    lang: str
    prompt: str
    subtasks: list[_SubtaskJson]
    clauses: list[_ClauseJson] = []
    tags: list[str] = []
    context: list[_MessageJson] = []
    stated_class: str | None = Field(None, alias="class")
    fanout_expected: bool | None = None


class _OlderJson(_Json):
    id: str | int
    cls: str = Field(alias="class")
    prompt: str
    fanout_expected: bool
    adversarial: bool = False
    lang: str = "?"


def from_json(item: object) -> Case:
    """One JSON object to a Case; checks types, spans, the DAG, and that the stated class is the DAG's."""
    raw = _CaseJson.model_validate(item)
    prompt = raw.prompt
    prompt.encode()  # half a surrogate pair is no text that anyone could send
    subtasks = [Subtask(t.id, *t.place(prompt), tuple(t.deps), t.length) for t in raw.subtasks]
    clauses = [Clause(*c.place(prompt), _role(c.role), c.target) for c in raw.clauses]
    truth = Plan(
        prompt,
        tuple(sorted(subtasks, key=lambda task: task.start)),
        tuple(sorted(clauses, key=lambda clause: clause.start)),
    )
    _check(raw, truth)
    return Case(
        id=raw.id,
        lang=raw.lang,
        prompt=prompt,
        fanout_expected=truth.fans_out,
        truth=truth,
        tags=tuple(raw.tags),
        context=tuple((m.role, m.content) for m in raw.context),
    )


def _role(name: str) -> Role:
    for role in ROLES:
        if role == name:
            return role
    raise CaseError(f"unknown role {name!r}; known are {', '.join(ROLES)}")


def _check(raw: _CaseJson, truth: Plan) -> None:
    if raw.stated_class not in (None, truth.cls):
        raise CaseError(f"case {raw.id}: class is {raw.stated_class!r}, its DAG says {truth.cls!r}")
    if raw.fanout_expected not in (None, truth.fans_out):
        raise CaseError(f"case {raw.id}: fanout_expected is {raw.fanout_expected}, its DAG says {truth.fans_out}")
    for before, after in zip(truth.spans, truth.spans[1:], strict=False):
        if after.start < before.end:
            raise CaseError(f"case {raw.id}: {truth.text(before)!r} and {truth.text(after)!r} overlap")
    targets = {"each", "joint", *(task.id for task in truth.subtasks)}
    for clause in truth.clauses:
        if clause.role == "constraint" and clause.target not in targets:
            raise CaseError(f"case {raw.id}: constraint target {clause.target!r} is none of {sorted(targets)}")
        if clause.target == "joint" and truth.fans_out:
            raise CaseError(f"case {raw.id}: a joint constraint serialises, but its DAG fans out")


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
