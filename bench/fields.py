"""The tables of all fields of the API, made of its schemas: `python bench/fields.py` writes docs/api-fields.md."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from pascal_engine.engine import Engine, EngineOptions
from pascal_engine.sampling.params import SamplingParams
from pascal_engine.server.app import routes
from pascal_engine.server.options import ServerOptions
from pascal_engine.server.passed_over import FOREIGN
from pascal_engine.server.routes import Route
from pascal_engine.server.schemas import IGNORED, REFUSED, Body, GenerationBody

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/api-fields.md"
MODEL = ROOT / "tests/data/engine/qwen35-tiny.gguf"

INTRO = """\
# Fields of the API

Made by `python bench/fields.py` from the schemas that check each request. Names are those of llama-server, OpenAI and
Anthropic. A value of a wrong type or out of range is refused with status 400, and so is what llama-server can do and
this engine cannot: the tables at the end name it. A field that is in no table is passed over, as llama-server does,
since clients send such fields along for other servers. A field set to null counts as absent.
The same schemas are at `/openapi.json`.
"""
DEFAULTS = """\
Where a default is of the server, a flag of the same name changes it (`--temp`, `--top-k`, `--predict` ...)."""


def page() -> str:
    """The page as it should read."""
    table = [route for route in _routes() if route.body is not None]
    parts = [INTRO, "## All routes that generate", DEFAULTS, _accepted(GenerationBody, set(), GenerationBody)]
    for route in table:
        assert route.body is not None
        shared = set(GenerationBody.model_fields) if issubclass(route.body, GenerationBody) else set()
        note = "Besides the fields above:" if shared else ""
        parts += [f"## {_title(route)}", f"{route.summary} {note}".strip(), _accepted(route.body, shared, route.body)]
    parts += ["## Accepted without effect", _ignored(table), "## Refused", REFUSALS, _refused(table)]
    parts += ["## Of other servers", FOREIGNERS, _foreign()]
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


REFUSALS = """\
Fields of llama-server, OpenAI and Anthropic that the engine knows and does not do. The values of the middle column ask
for nothing and are accepted."""


FOREIGNERS = """\
Clients send these along for other servers, and llama-server passes over them. So do all routes that generate, but for
`/v1/messages`, where a value asks for nothing, or for what the field of the last column asks for too. Any other value
is refused."""


def _routes() -> list[Route]:
    return routes(Engine.open(MODEL, EngineOptions(64)), ServerOptions())


def _title(route: Route) -> str:
    return f"{route.method} " + ", ".join(f"`{path}`" for path in route.paths)


def _accepted(body: type[Body], without: set[str], schema_of: type[Body]) -> str:
    properties = schema_of.model_json_schema()["properties"]
    rows = [
        (f"`{name}`", _type(properties[name]), _default(name, field), field.description or "")
        for name, field in sorted(body.model_fields.items())
        if name not in without and field.json_schema_extra != IGNORED
    ]
    return _table(("Field", "Type", "Default", "Meaning"), rows) if rows else "No other fields."


def _ignored(table: list[Route]) -> str:
    rows = {}
    for route in table:
        assert route.body is not None
        for name, field in route.body.model_fields.items():
            if field.json_schema_extra == IGNORED:
                rows.setdefault((name, field.description or ""), []).append(route.paths[0])
    return _table(("Field", "Why", "Routes"), ((f"`{n}`", why, _paths(at)) for (n, why), at in sorted(rows.items())))


def _refused(table: list[Route]) -> str:
    rows: dict[tuple[str, str], list[str]] = {}
    for route in table:
        assert route.body is not None
        own = {} if route.body.refused is REFUSED and not issubclass(route.body, GenerationBody) else route.body.refused
        for name, neutral in own.items():
            if name not in route.body.model_fields:
                values = ", ".join(f"`{json.dumps(value)}`" for value in neutral)
                rows.setdefault((f"`{name}`", values), []).append(route.paths[0])
    return _table(("Field", "Accepted values", "Refused by"), [(*row, _paths(at)) for row, at in sorted(rows.items())])


def _foreign() -> str:
    rows = []
    for name, foreign in sorted(FOREIGN.items()):
        values = "any" if foreign.neutral is None else ", ".join(f"`{json.dumps(value)}`" for value in foreign.neutral)
        rows.append((f"`{name}`", values, f"`{foreign.own}`" if foreign.own else ""))
    return _table(("Field", "Accepted values", "The same as"), rows)


def _paths(paths: list[str]) -> str:
    return ", ".join(f"`{path}`" for path in paths)


def _type(schema: dict[str, Any]) -> str:
    """A few words for a JSON schema."""
    if "$ref" in schema:
        return "object"
    if "enum" in schema or "const" in schema:
        return " or ".join(f"`{json.dumps(value)}`" for value in schema.get("enum", [schema.get("const")]))
    if "anyOf" in schema:
        kinds = dict.fromkeys(_type(part) for part in schema["anyOf"] if part.get("type") != "null")
        return " or ".join(kinds)
    if schema.get("type") == "array":
        inner = _type(schema.get("items", {}))
        return f"list of {inner}" if inner != "any" else "list"
    return {"integer": "whole number", "boolean": "true or false"}.get(
        schema.get("type", "any"), schema.get("type", "any")
    ) + _range(schema)


def _range(schema: dict[str, Any]) -> str:
    words = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "to", "exclusiveMaximum": "below"}
    parts = [f"{word} {schema[key]}" for key, word in words.items() if key in schema and abs(schema[key]) < 2**31 - 1]
    return f", {' '.join(parts)}" if parts else ""


def _default(name: str, field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    of_server = {
        entry.name: entry.default for entry in fields(SamplingParams) if entry.name not in ("seed", "logit_bias")
    }
    value = field.get_default(call_default_factory=True)
    if value is None and name in of_server:
        value = of_server[name]
    if value is None or isinstance(value, BaseModel):
        return {"seed": "`-1`", "n_predict": "`-1`"}.get(name, "")
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def _table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]] | list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line) + " |" for line in lines
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
