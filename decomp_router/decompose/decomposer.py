"""The decomposer: one prompt in, its plan out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

import numpy as np

from decomp_router.decompose.network import Network, OnnxNetwork
from decomp_router.decompose.reading import Reading, Thresholds, chain, read
from decomp_router.decompose.tokens import Ids, PromptTokenizer
from decomp_router.decompose.windows import MAX_TOKENS, scores_of
from decomp_router.plan import Plan

CACHED_READINGS = 512


class Decomposer:
    """Reads prompts with a network; keeps the last readings. Safe to call from several threads."""

    def __init__(self, network: Network, tokenizer: PromptTokenizer, thresholds: Thresholds) -> None:
        self._network, self._tokenizer, self._thresholds = network, tokenizer, thresholds
        self._cached = lru_cache(CACHED_READINGS)(self._read)

    def read(self, prompt: str, context: Sequence[tuple[str, str]] = ()) -> Reading:
        """The plan of the last user message; `context` are the (role, content) messages before it."""
        return self._cached(prompt, tuple(context))

    def _read(self, prompt: str, context: tuple[tuple[str, str], ...]) -> Reading:
        if not prompt.strip():
            return Reading(Plan.atomic(prompt), "an empty prompt")
        encoding = self._tokenizer.encode(prompt, context)
        if len(encoding.spans) > MAX_TOKENS:
            return Reading(Plan.atomic(prompt), f"over {MAX_TOKENS} tokens")
        stitched = scores_of(self._network, encoding)
        reading = read(prompt, encoding.spans, stitched.scores, self._thresholds)
        if not reading.plan.fans_out or (stitched.agree and _within(reading.plan, encoding.spans, stitched.reach)):
            return reading
        return Reading(chain(reading.plan), "too long to be read at once, and the overlapping parts leave doubt")


def _within(plan: Plan, spans: Ids, reach: int) -> bool:
    """Every sub-task stands near enough to every other to have been read in one window with it."""
    first = np.searchsorted(spans[:, 0], plan.subtasks[0].start)
    last = np.searchsorted(spans[:, 1], plan.subtasks[-1].end)
    return bool(last - first < reach)


def load(folder: Path | None = None) -> Decomposer:
    """The shipped artefact, or one of the same layout. Raises OSError with the missing file's name."""
    root = folder or Path(str(files("decomp_router.decompose") / "artefact"))
    thresholds = Thresholds(**json.loads((root / "thresholds.json").read_text(encoding="utf-8")))
    network = OnnxNetwork(root / "network.onnx")
    return Decomposer(network, PromptTokenizer(root / "tokenizer.json"), thresholds)
