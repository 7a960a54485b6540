"""Grammars that hold an answer to a schema, or its calls to their functions, in llguidance's variant of Lark."""

import json
from collections.abc import Mapping, Sequence

from pascal_engine.sampling.constraint import Constraint, ConstraintCompiler
from pascal_engine.server.chat.calls.types import types_of
from pascal_engine.server.chat.dialect import CLOSE_CALL, CLOSE_THOUGHT, OPEN_CALL, OPEN_THOUGHT, Dialect, Thinking
from pascal_engine.server.chat.schema import ChatBody, Function

# As templates write arguments, so that the next prompt repeats the answer token by token.
_SPACING = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
# Others write the schemas of tools, with keywords that no grammar can hold: those are passed over.
_OF_ARGUMENTS = {**_SPACING, "lenient": True}
_ANYTHING = "/(?s:.*)/"
_GAP = "gap: /\\n{0,2}/\n"
# Text that ends with a tag is matched lazily, without regard to the rest: what begins with a thought must not match.
_FREE = f"""\
free: FREE
FREE: {_ANYTHING} & ~/(?s:.*){OPEN_CALL}(?s:.*)/ & ~/{OPEN_THOUGHT}(?s:.*)/
free_calls: up_to_call calls_begun
up_to_call[suffix="{OPEN_CALL}"]: NO_THOUGHT
NO_THOUGHT: {_ANYTHING} & ~/{OPEN_THOUGHT}(?s:.*)/
"""


def constraint_for(
    compiler: ConstraintCompiler,
    body: ChatBody,
    dialect: Dialect,
    thinking: Thinking,
    functions: Sequence[Function],
) -> Constraint | None:
    """What the answer must follow, None where it is free. Raises `ConstraintError` on a schema that cannot be used."""
    schema = body.schema_wanted
    if not functions:
        if schema is None:
            return None
        if thinking == "no":
            return compiler.from_json_schema(schema)
        return compiler.from_lark(_start(thinking, "answer") + f"answer: %json {_dump(schema)}\n")
    several = body.parallel_tool_calls and body.choice.name is None
    calls = _call_rules(functions, dialect, several)
    if body.choice.mode == "required":
        return compiler.from_lark(_start(thinking, "calls") + calls)
    if schema is not None:
        return compiler.from_lark(_start(thinking, "answer | calls") + f"answer: %json {_dump(schema)}\n" + calls)
    if thinking == "no":
        # Nothing is held back before the model begins a call.
        return compiler.from_lark(_start("no", "calls_begun") + calls).after(OPEN_CALL)
    return compiler.from_lark(_start(thinking, "free | free_calls") + _FREE + calls)


def _start(thinking: Thinking, rule: str) -> str:
    """An answer that is `rule`, behind the thought where there is or may be one."""
    if thinking == "no":
        return f"start: {rule}\n{_GAP}"
    thought, text = ("thought", _ANYTHING) if thinking == "open" else ("thought?", f"/{OPEN_THOUGHT}(?s:.*)/")
    rules = [
        f"start: {thought} after_thought",
        f"after_thought: {rule}",
        "thought: thought_text gap",
        f'thought_text[suffix="{CLOSE_THOUGHT}"]: {text}',
    ]
    return "\n".join(rules) + f"\n{_GAP}"


def _call_rules(functions: Sequence[Function], dialect: Dialect, several: bool) -> str:
    """`calls`, and `calls_begun` for what follows the first opening tag."""
    write = _xml_rules if dialect.tools == "xml" else _json_rules
    more = f' (gap "{OPEN_CALL}" call_begun)*' if several else ""
    rules = [
        f'calls: "{OPEN_CALL}" calls_begun',
        f"calls_begun: call_begun{more}",
        f'call_begun: /\\n?/ function /\\n?/ "{CLOSE_CALL}"',
        "function: " + " | ".join(f"function_{index}" for index in range(len(functions))),
        *(rule for index, function in enumerate(functions) for rule in write(index, function)),
    ]
    return "\n".join(rules) + "\n"


def _json_rules(index: int, function: Function) -> list[str]:
    opening = f'{{"name": {_quoted(function.name)}, "arguments": '
    schema = {**function.schema_of_arguments, "x-guidance": _OF_ARGUMENTS}
    return [f'function_{index}: {_quoted(opening)} arguments_{index} "}}"', f"arguments_{index}: %json {_dump(schema)}"]


def _xml_rules(index: int, function: Function) -> list[str]:
    schema = function.schema_of_arguments
    properties, required = schema.get("properties"), schema.get("required")
    required = required if isinstance(required, list) else []
    name = f"function_{index}"
    opening, closing = _quoted(f"<function={function.name}>\n"), _quoted("</function>")
    if not isinstance(properties, Mapping) or not (properties or schema.get("additionalProperties") is False):
        any_parameter = f'"<parameter=" /[^<>\\n]+/ ">\\n" {name}_text'
        return [f"{name}: {opening} ({any_parameter})* {closing}", _text_rule(f"{name}_text")]
    parameters = [f"{name}_{number}" + ("" if key in required else "?") for number, key in enumerate(properties)]
    rules = [f"{name}: {' '.join([opening, *parameters, closing])}"]
    for number, key in enumerate(properties):
        rules += _parameter_rules(f"{name}_{number}", key, schema)
    return rules


def _parameter_rules(name: str, key: str, schema: Mapping[str, object]) -> list[str]:
    """One parameter: bare text where it may be a string, else JSON."""
    opening, closing = _quoted(f"<parameter={key}>\n"), _quoted("\n</parameter>\n")
    properties = schema["properties"]
    assert isinstance(properties, Mapping)
    wanted = properties[key]
    choices = wanted.get("enum") if isinstance(wanted, Mapping) else None
    types = types_of(schema, key)
    if isinstance(choices, list) and choices and all(isinstance(choice, str) for choice in choices):
        listed = " | ".join(map(_quoted, choices))
        return [f"{name}: {opening} ({listed}) {closing}"]
    if "string" in types.names or not types.names:
        return [f"{name}: {opening} {name}_text", _text_rule(f"{name}_text")]
    shared = {part: schema[part] for part in ("$defs", "definitions") if part in schema}
    value = {**shared, **wanted, "x-guidance": _OF_ARGUMENTS}
    return [f"{name}: {opening} {name}_value {closing}", f"{name}_value: %json {_dump(value)}"]


def _text_rule(name: str) -> str:
    return f"{name}[suffix={_quoted(chr(10) + '</parameter>' + chr(10))}]: {_ANYTHING}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _dump(schema: object) -> str:
    return json.dumps(schema, ensure_ascii=False)
