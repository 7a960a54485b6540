"""What an answer of ours has other than one of llama-server's: status, fields, JSON types, kinds of events."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Literal

from tests.engine.harness import Json

Kind = Literal["status", "content type", "missing", "extra", "type", "value", "length"]

# Fields that mean the same whatever the model is and says.
_SAME = {
    "code", "encoding_format", "finish_reason", "format", "is_processing", "n_ctx", "object", "output_index",
    "role", "speculative", "status", "stop", "stop_reason", "stop_type", "stopping_word", "total_slots", "truncated",
    "type", "index", "name", "filename", "prompt", "n_saved", "n_restored", "n_erased",
}  # fmt: skip
_SETTINGS = "generation_settings."


@dataclass(frozen=True)
class Difference:
    """`path` names fields from the outside in, dots between them; places in lists are left out."""

    kind: Kind
    path: str
    detail: str

    def __str__(self) -> str:
        return f"{self.kind} {self.path or '(all)'}: {self.detail}"


def differences(theirs: Json, ours: Json) -> Iterator[Difference]:
    """Both as `record.answer` gives them."""
    if theirs["status"] != ours["status"]:
        yield Difference("status", "", f"{theirs['status']}, ours {ours['status']}")
    elif theirs["content_type"] != ours["content_type"]:
        yield Difference("content type", "", f"{theirs['content_type']}, ours {ours['content_type']}")
    elif "events" in theirs:
        yield from _events(theirs["events"], ours["events"])
    elif "body" in theirs:
        yield from _values(theirs["body"], ours["body"], "")
    else:
        yield from _lines(theirs["lines"], ours["lines"])


def _values(theirs: Any, ours: Any, path: str) -> Iterator[Difference]:  # noqa: ANN401
    if _type(theirs) != _type(ours) and (_type(theirs), _type(ours)) != ("fraction", "integer"):
        yield Difference("type", path, f"{_short(theirs)}, ours {_short(ours)}")
    elif isinstance(theirs, dict):
        for field in theirs.keys() - ours.keys():
            yield Difference("missing", f"{path}.{field}".lstrip("."), _short(theirs[field]))
        for field in ours.keys() - theirs.keys():
            yield Difference("extra", f"{path}.{field}".lstrip("."), _short(ours[field]))
        for field in theirs.keys() & ours.keys():
            yield from _values(theirs[field], ours[field], f"{path}.{field}".lstrip("."))
    elif isinstance(theirs, list):
        if bool(theirs) != bool(ours):
            yield Difference("length", path, f"{_short(theirs)}, ours {_short(ours)}")
        for place, item in enumerate(ours if theirs else []):
            yield from _values(theirs[min(place, len(theirs) - 1)], item, path)
    elif _means_the_same(path) and not _equal(theirs, ours):
        yield Difference("value", path, f"{_short(theirs)}, ours {_short(ours)}")


def _means_the_same(path: str) -> bool:
    return _SETTINGS in path or path.rpartition(".")[2] in _SAME


def _equal(theirs: Any, ours: Any) -> bool:  # noqa: ANN401
    if isinstance(theirs, str) and theirs.endswith("…"):
        return str(ours).startswith(theirs[:-1])
    return bool(abs(theirs - ours) < 1e-3) if isinstance(theirs, float) else bool(theirs == ours)


def _type(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "fraction"
    return type(value).__name__


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:60] + "…"


def _lines(theirs: list[str], ours: list[str]) -> Iterator[Difference]:
    """Names and kinds of metrics; their help is each engine's own."""
    known, given = ({line for line in lines if line.startswith("# TYPE ")} for lines in (theirs, ours))
    for line in sorted(known - given):
        yield Difference("missing", line, "")
    for line in sorted(given - known):
        yield Difference("extra", line, "")


def _events(theirs: list[list[Any]], ours: list[list[Any]]) -> Iterator[Difference]:
    known, given = runs(theirs), runs(ours)
    kinds, own = [kind for kind, _ in known], [kind for kind, _ in given]
    for change, start, end, own_start, own_end in SequenceMatcher(None, kinds, own, autojunk=False).get_opcodes():
        if change == "equal":
            for (kind, run), (_, own_run) in zip(known[start:end], given[own_start:own_end], strict=True):
                yield from _run(kind, run, own_run)
            continue
        whole = f"{' '.join(kinds)}; ours {' '.join(own)}"
        for kind in kinds[start:end]:
            yield Difference("missing", f"<{kind}>", whole)
        for kind in own[own_start:own_end]:
            yield Difference("extra", f"<{kind}>", whole)


def _run(kind: str, theirs: list[Any], ours: list[Any]) -> Iterator[Difference]:
    """First with first, last with last, others with a middle one."""
    for place, data in enumerate(ours):
        last = len(theirs) - 1
        like = 0 if place == 0 else last if place == len(ours) - 1 else min(1, last)
        for difference in _values(theirs[like], data, ""):
            yield Difference(difference.kind, f"<{kind}>.{difference.path}", difference.detail)


def runs(events: list[list[Any]]) -> list[tuple[str, list[Any]]]:
    """Events that say the same kind of thing one after another, together."""
    found: list[tuple[str, list[Any]]] = []
    for name, data in events:
        kind = _kind(name, data)
        if found and found[-1][0] == kind:
            found[-1][1].append(data)
        else:
            found.append((kind, [data]))
    return found


def _kind(name: str | None, data: Any) -> str:  # noqa: ANN401
    if data == "[DONE]":
        return "done"
    if name is not None:
        part = data.get("delta") or data.get("content_block") or data.get("item") or data.get("part") or {}
        return f"{name}:{part['type']}" if isinstance(part, dict) and "type" in part else name
    if "prompt_progress" in data:
        return "progress"
    if "choices" not in data:
        return "error" if "error" in data else "end" if data.get("stop") else "text"
    if not data["choices"]:
        return "usage"
    (choice,) = data["choices"]
    if choice["finish_reason"]:
        return "end"
    return _delta_kind(choice["delta"]) if "delta" in choice else "text"


def _delta_kind(delta: Json) -> str:
    if "role" in delta:
        return "role"
    if "tool_calls" in delta:
        return "call" if "name" in delta["tool_calls"][0]["function"] else "arguments"
    return "+".join(sorted(delta)) or "nothing"
