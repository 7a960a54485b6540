"""The same words typed in haste."""

from __future__ import annotations

import random
import re
import unicodedata


def lowered(text: str) -> str:
    return text.lower()


def without_punctuation(text: str) -> str:
    return re.sub(r"(?<=\w)[.,;:](?=\s|$)|[¿¡?!]", "", text)


def without_accents(text: str) -> str:
    decomposed = unicodedata.normalize("NFD", text)
    return unicodedata.normalize("NFC", "".join(c for c in decomposed if c not in "\u0301\u0300\u0308"))


def misspelt(text: str, rng: random.Random, share: float = 0.02) -> str:
    """Some letters swapped with the next, some left out."""
    letters = list(text)
    for i in range(1, len(letters) - 1):
        if letters[i].isalpha() and letters[i + 1].isalpha() and rng.random() < share:
            if rng.random() < 0.5:
                letters[i], letters[i + 1] = letters[i + 1], letters[i]
            else:
                letters[i] = ""
    return "".join(letters)
