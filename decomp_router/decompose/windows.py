"""Prompts longer than the network's window: overlapping windows, and what they agree on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decomp_router.decompose.network import Network, Scores
from decomp_router.decompose.tokens import BOS, EOS, WINDOW, Encoding, Ids

SPAN = WINDOW - 2
STRIDE = SPAN // 2
MAX_TOKENS = 2_000
"""Longer prompts are not read at all."""


@dataclass(frozen=True)
class Window:
    """One pass over prompt tokens first..end (end exclusive)."""

    first: int
    end: int
    scores: Scores

    def spans(self, encoding: Encoding) -> Ids:
        """[tokens of this window, 2], code points of the prompt."""
        return encoding.spans[self.first : self.end]

    def covers(self, span: tuple[int, int], encoding: Encoding) -> bool:
        """Whether a stretch of the prompt lies inside, at least in part."""
        start, end = encoding.spans[self.first][0], encoding.spans[self.end - 1][1]
        return bool(span[0] < end and span[1] > start)


def windows(network: Network, encoding: Encoding) -> list[Window]:
    """One pass for a prompt that fits, together with what went before it; else passes that overlap by half."""
    tokens = len(encoding.spans)
    if len(encoding.ids) <= WINDOW:
        return [Window(0, tokens, network.run(encoding.ids, encoding.layout))]
    starts = [*range(0, tokens - SPAN, STRIDE), tokens - SPAN]
    return [Window(start, start + SPAN, _run(network, encoding, start)) for start in starts]


def _run(network: Network, encoding: Encoding, start: int) -> Scores:
    inside = slice(start + 1, start + 1 + SPAN)
    ids = np.concatenate([[BOS], encoding.ids[inside], [EOS]])
    return network.run(ids, np.concatenate([[0], encoding.layout[inside], [0]]))
