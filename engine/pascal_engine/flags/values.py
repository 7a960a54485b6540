"""Kinds of values that flags take; each raises `ArgumentTypeError` with a sentence that says what a right one is."""

import json
import re
from argparse import ArgumentTypeError
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

_TRUE, _FALSE = ("1", "true", "on", "enabled", "yes"), ("0", "false", "off", "disabled", "no")


def size(text: str) -> int:
    """Bytes that `2GiB`, `1.5 MiB` or `4096` stand for."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([KMGT]i)?B?", text, re.IGNORECASE)
    if found is None:
        raise ArgumentTypeError(f"'{text}' is not a size; give bytes, or a number with KiB, MiB, GiB or TiB")
    exponent = "kmgt".index(found[2][0].lower()) + 1 if found[2] else 0
    return int(Decimal(found[1]) * 1024**exponent)


def mebibytes(text: str) -> int:
    """Bytes of so many MiB; -1 is no limit."""
    number = whole_number(-1)(text)
    return 1 << 62 if number < 0 else number << 20


def whole_number(least: int, most: int = 2**31) -> Callable[[str], int]:
    """Whole numbers from `least` to `most`."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"-?[0-9]{1,20}", text, re.ASCII) or not least <= int(text) <= most:
            raise ArgumentTypeError(f"'{text}' is not a whole number from {least} to {most}")
        return int(text)

    return parse


def number(text: str) -> float:
    """Any number; the ranges are those of the request's fields."""
    try:
        return float(text)
    except ValueError:
        raise ArgumentTypeError(f"'{text}' is not a number") from None


def boolean(text: str) -> bool:
    """What llama-server's environment variables hold for flags without a value."""
    if text.lower() not in _TRUE + _FALSE:
        raise ArgumentTypeError(f"'{text}' is neither {' or '.join(_TRUE[:3])} nor {' or '.join(_FALSE[:3])}")
    return text.lower() in _TRUE


def names(text: str) -> list[str]:
    """Names between semicolons."""
    return [name for name in text.split(";") if name]


def json_object(text: str) -> dict[str, Any]:
    """An object in JSON."""
    try:
        content = json.loads(text)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise ArgumentTypeError("it must be an object in JSON")
    return content


def text_file(text: str) -> str:
    """What a file holds."""
    try:
        return Path(text).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no text in UTF-8"
        raise ArgumentTypeError(f"{text} cannot be read ({reason})") from None


def folder(text: str) -> Path:
    """A folder that is there."""
    if not Path(text).is_dir():
        raise ArgumentTypeError(f"there is no folder {text}; make it first")
    return Path(text)


def jinja(text: str) -> str:
    """The source of a chat template; of llama-server's names for built-in ones only `chatml` is known."""
    if text != "chatml" and "{" not in text:
        raise ArgumentTypeError(f"'{text}' is no Jinja template; only 'chatml' is known by name")
    return "" if text == "chatml" else text


def keys(text: str) -> list[str]:
    """API keys between commas."""
    found = [key for key in (part.strip() for part in text.split(",")) if key]
    if not found:
        raise ArgumentTypeError("it is empty; give a key, or leave the flag out")
    return found


def keys_in_file(text: str) -> list[str]:
    """API keys, one a line; lines that begin with # are comments."""
    found = [line.strip() for line in text_file(text).splitlines()]
    found = [line for line in found if line and not line.startswith("#")]
    if not found:
        raise ArgumentTypeError(f"{text} holds no key; put one on each line")
    return found
