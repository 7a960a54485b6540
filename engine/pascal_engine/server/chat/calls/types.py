"""What a function's schema says about the value of a parameter that is written as bare text."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_NAMES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
_PYTHON = {"True": "true", "False": "false", "None": "null"}
_DEEPEST = 16


@dataclass(frozen=True)
class Types:
    """Names of JSON types that a value may have; none at all where the schema does not say."""

    names: frozenset[str]

    @property
    def only_text(self) -> bool:
        return self.names == {"string"}

    def allow(self, value: object) -> bool:
        if not self.names:
            return True
        name = "null" if value is None else _NAMES[type(value)]
        return name in self.names or (name == "integer" and "number" in self.names)


def types_of(schema: Mapping[str, object], parameter: str) -> Types:
    """The types of one parameter of a function whose arguments follow `schema`."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or parameter not in properties:
        return Types(frozenset())
    return Types(frozenset(_names(properties[parameter], schema, 0)))


def json_text(text: str, types: Types) -> str:
    """A bare value as JSON: as it stands where it is of an allowed type, else as a string."""
    stripped = _PYTHON.get(text.strip(), text.strip())
    try:
        value = json.loads(stripped, parse_constant=_no_json)
        fits = types.allow(value) and (not isinstance(value, str) or "string" not in types.names)
    except (ValueError, RecursionError):
        fits = False
    return stripped if fits else json.dumps(text, ensure_ascii=False)


def _no_json(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _names(schema: object, root: Mapping[str, object], depth: int) -> Iterator[str]:
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return
    reference = schema.get("$ref")
    if isinstance(reference, str):
        yield from _names(_resolve(reference, root), root, depth + 1)
    named = schema.get("type")
    yield from (name for name in (named if isinstance(named, list) else [named]) if isinstance(name, str))
    for key in ("anyOf", "oneOf", "allOf"):
        branches = schema.get(key)
        for branch in branches if isinstance(branches, list) else ():
            yield from _names(branch, root, depth + 1)
    constants = schema.get("enum", [schema["const"]] if "const" in schema else [])
    for value in constants if isinstance(constants, list) and named is None else ():
        yield "null" if value is None else _NAMES[type(value)]


def _resolve(reference: str, root: Mapping[str, object]) -> object:
    """What `#/path/in/the/schema` refers to; None if there is no such thing."""
    here: object = root
    for step in reference.removeprefix("#/").split("/"):
        here = here.get(step) if isinstance(here, Mapping) else None
    return here
