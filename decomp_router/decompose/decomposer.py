"""The decomposer: one prompt in, its plan out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from decomp_router.decompose.network import Network, OnnxNetwork
from decomp_router.decompose.reading import Reading, probability, read_freely, settle, signs_of
from decomp_router.decompose.thresholds import Thresholds
from decomp_router.decompose.tokens import Encoding, PromptTokenizer, context_of
from decomp_router.decompose.windows import MAX_TOKENS, Window, windows
from decomp_router.plan import Plan

CACHED_READINGS = 512
MAX_CHARACTERS = 40_000
"""Longer prompts have over 2,000 tokens, or are mostly blank; they are not even tokenised."""

FOREIGN = 0.3
"""Share of letters of other scripts from which up a prompt is out of the network's distribution."""
LATIN_END = 0x024F


class ArtefactError(OSError):
    """The decomposer's files are missing or broken; the message names the file."""


class Decomposer:
    """Reads prompts with a network; keeps the last readings. Safe to call from several threads."""

    def __init__(self, network: Network, tokenizer: PromptTokenizer, thresholds: Thresholds) -> None:
        self._network, self._tokenizer, self.thresholds = network, tokenizer, thresholds
        self._cached = lru_cache(CACHED_READINGS)(self.read_anew)

    def read(self, prompt: str, context: Sequence[tuple[str, str]] = ()) -> Reading:
        """The plan of the last user message; `context` are the (role, content) messages before it."""
        earlier = context_of(context)
        return self._cached(prompt, earlier if is_unicode(earlier) else "")

    def chance(self, reading: Reading) -> float | None:
        """The probability, as observed on such evidence, that fanning out is safe; None where nothing could fan out."""
        if reading.evidence is None:
            return None
        return probability(self.thresholds.odds(reading.evidence))

    def look(self, prompt: str, context: str = "") -> tuple[Encoding, list[Window]] | None:
        """The passes over a prompt; None where it is refused unread."""
        if _refusal(prompt):
            return None
        encoding = self._tokenizer.encode(prompt, context)
        if len(encoding.spans) > MAX_TOKENS:
            return None
        return encoding, windows(self._network, encoding)

    def read_anew(self, prompt: str, context: str = "") -> Reading:
        """The same as `read`, computed whether kept or not; `context` is the text that went before."""
        return settle(self.read_freely(prompt, context), self.thresholds)

    def read_freely(self, prompt: str, context: str = "") -> Reading:
        """The plan as wide as it could be, however little certainty there is."""
        looked = self.look(prompt, context)
        if looked is None:
            return Reading(Plan.atomic(prompt), _refusal(prompt) or f"over {MAX_TOKENS} tokens")
        encoding, found = looked
        readings = [read_freely(prompt, window.spans(encoding), window.scores, self.thresholds) for window in found]
        if len(readings) == 1:
            return readings[0]
        signs = [signs_of(window.scores, window.spans(encoding)) for window in found]
        joint = max(sign.joint for sign in signs)
        asks = [sign.asks for sign in signs]
        agreed = _agreed(encoding, found, readings, asks) if joint < self.thresholds.joint else None
        return agreed or Reading(Plan.atomic(prompt), "too long to be read at once, and its parts leave doubt")


def _refusal(prompt: str) -> str | None:
    """Why a prompt is not even tokenised."""
    if not prompt.strip():
        return "an empty prompt"
    if len(prompt) > MAX_CHARACTERS:
        return f"over {MAX_CHARACTERS} characters"
    if not is_unicode(prompt):
        return "half of a surrogate pair, which is no text"
    return "mostly in a script that the network never learnt" if _foreign(prompt) > FOREIGN else None


def _foreign(prompt: str) -> float:
    """Share of letters that are not Latin; the network's six languages are all written in Latin letters."""
    letters = [letter for letter in prompt if letter.isalpha()]
    strange = sum(ord(letter) > LATIN_END and not "\u1e00" <= letter <= "\u1eff" for letter in letters)
    return strange / len(letters) if letters else 0.0


def is_unicode(text: str) -> bool:
    """False for text with lone surrogates, which JSON can smuggle in and no tokenizer takes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _agreed(
    encoding: Encoding, found: list[Window], readings: list[Reading], asks: list[frozenset[tuple[int, int]]]
) -> Reading | None:
    """The reading of a window that holds every ask, sure or not, if each other window finds just those inside it."""
    everywhere = frozenset().union(*asks)
    expected = [frozenset(ask for ask in everywhere if window.covers(ask, encoding)) for window in found]
    if asks != expected:
        return None
    return next((reading for reading, mine in zip(readings, asks, strict=True) if mine == everywhere), None)


def load(folder: Path | None = None, thresholds: Thresholds | None = None) -> Decomposer:
    """The shipped artefact, or one of the same layout, with its own thresholds or others. Raises ArtefactError."""
    root = folder or Path(str(files("decomp_router.decompose") / "artefact"))
    try:
        sure = thresholds or Thresholds(**json.loads((root / "thresholds.json").read_text(encoding="utf-8")))
        return Decomposer(OnnxNetwork(root / "network.onnx"), PromptTokenizer(root / "tokenizer.json"), sure)
    except Exception as error:  # onnxruntime and tokenizers raise bare Exceptions of their own
        raise ArtefactError(
            f"the decomposer's files in {root} cannot be used: {error}; install the package anew"
        ) from error
