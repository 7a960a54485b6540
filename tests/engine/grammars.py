"""Schemas and grammars without end of variety, made from a seed, each with a judge of its own."""

import re
from random import Random
from typing import Any

Json = dict[str, Any]

_LETTERS = "abcxyz019_ äß漢"


def schema(random: Random, depth: int = 3) -> Json:
    """A JSON schema whose values are bounded in length."""
    plain = (_integer, _string, _enum, _const, _literal)
    nested = (_object, _object, _array, _any_of, _nullable)
    make = random.choice(plain if depth == 0 else plain + nested * 2)
    return make(random, depth - 1)


def _integer(random: Random, depth: int) -> Json:
    low = random.randint(-300, 300)
    made: Json = {"type": "integer", "minimum": low, "maximum": low + random.randint(0, 10**6)}
    return made | (
        {"multipleOf": random.choice([2, 5])} if made["maximum"] - low > 10 and random.random() < 0.2 else {}
    )


def _string(random: Random, depth: int) -> Json:
    if random.random() < 0.4:
        return {"type": "string", "pattern": f"^({pattern(random, 2)[0]})$"}
    least = random.randint(0, 3)
    return {"type": "string", "minLength": least, "maxLength": least + random.randint(0, 8)}


def _enum(random: Random, depth: int) -> Json:
    return {"enum": [random.choice([_word(random), random.randint(0, 99), None, True]) for _ in range(4)]}


def _const(random: Random, depth: int) -> Json:
    return {"const": random.choice([_word(random), 7, {"k": [1, "ä"]}, [False]])}


def _literal(random: Random, depth: int) -> Json:
    return {"type": random.choice(["boolean", "null"])}


def _object(random: Random, depth: int) -> Json:
    names = list(dict.fromkeys(_word(random) for _ in range(random.randint(0, 4))))
    required = [name for name in names if random.random() < 0.7]
    properties = {name: schema(random, depth) for name in names}
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _array(random: Random, depth: int) -> Json:
    least = random.randint(0, 2)
    return {"type": "array", "items": schema(random, depth), "minItems": least, "maxItems": least + 2}


def _any_of(random: Random, depth: int) -> Json:
    return {"anyOf": [schema(random, depth) for _ in range(2)]}


def _nullable(random: Random, depth: int) -> Json:
    return {"type": ["integer", "null"], "minimum": 0, "maximum": random.randint(0, 50)}


def _word(random: Random) -> str:
    return "".join(random.choice(_LETTERS) for _ in range(random.randint(1, 5)))


def pattern(random: Random, depth: int) -> tuple[str, str]:
    """A regular expression without unbounded repeats, and the same as the right side of a GBNF rule."""
    kind = random.choice("lc" if depth == 0 else "lcssao")
    if kind == "l":
        text = _word(random)
        return re.escape(text).replace("\\ ", " "), f'"{text}"'
    if kind == "c":
        return random.choice([("[a-f0-9]", "[a-f0-9]"), ("[^a-zäß]", "[^a-zäß]"), ("[ä-ü]", r"[\xe4-\u00fc]")])
    parts = [pattern(random, depth - 1) for _ in range(random.randint(2, 3))]
    if kind == "s":
        return "".join(f"(?:{part})" for part, _ in parts), " ".join(f"( {part} )" for _, part in parts)
    if kind == "a":
        return "|".join(f"(?:{part})" for part, _ in parts), " | ".join(part for _, part in parts)
    low = random.randint(0, 2)
    times = random.choice(["?", f"{{{low},{low + 2}}}", f"{{{low + 1}}}"])
    return f"(?:{parts[0][0]}){times}", f"({parts[0][1]}){times}"
