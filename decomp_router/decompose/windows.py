"""Prompts longer than the network's window: overlapping windows, stitched where they agree."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from decomp_router.decompose.labels import TAG_INDEX
from decomp_router.decompose.network import Floats, Network, Scores
from decomp_router.decompose.tokens import BOS, EOS, WINDOW, Encoding

STRIDE = (WINDOW - 2) // 2
MAX_TOKENS = 2_000
"""Longer prompts are not read at all."""
AGREEMENT = 0.9
"""Share of overlapping tokens whose role as sub-task text two windows must agree on."""


@dataclass(frozen=True)
class Stitched:
    """Scores over a whole prompt; `agree` is False where windows contradict each other."""

    scores: Scores
    agree: bool
    reach: int
    """Sub-tasks further apart than this many tokens were never seen together."""


def scores_of(network: Network, encoding: Encoding) -> Stitched:
    """One pass for a short prompt, overlapping passes for a long one (earlier messages are then left out)."""
    if len(encoding.ids) <= WINDOW:
        return Stitched(network.run(encoding.ids, encoding.layout), True, WINDOW)
    tokens = len(encoding.spans)
    starts = [*range(0, tokens - 2 * STRIDE, STRIDE), tokens - 2 * STRIDE] if tokens > 2 * STRIDE else [0]
    passes = [_run(network, encoding, start) for start in starts]
    return _stitch(starts, passes, tokens)


def _run(network: Network, encoding: Encoding, start: int) -> Scores:
    window = slice(start + 1, min(start + 2 * STRIDE, len(encoding.spans)) + 1)
    ids = np.concatenate([[BOS], encoding.ids[window], [EOS]])
    layout = np.concatenate([[0], encoding.layout[window], [0]])
    return network.run(ids, layout)


def _stitch(starts: list[int], passes: list[Scores], tokens: int) -> Stitched:
    """Each token from the window in which it stands furthest from an edge."""
    whole = [np.zeros((tokens + 2, part.shape[1]), part.dtype) for part in _per_token(passes[0])]
    depth = np.full(tokens, -1)
    task = np.zeros((len(passes), tokens), np.int8)
    for row, (start, scores) in enumerate(zip(starts, passes, strict=True)):
        count = len(scores.tags) - 2
        position = np.arange(count)
        mine = np.minimum(position, count - 1 - position)
        better = mine > depth[start : start + count]
        depth[start : start + count][better] = mine[better]
        for target, part in zip(whole, _per_token(scores), strict=True):
            target[start + 1 : start + 1 + count][better] = part[1:-1][better]
        task[row, start : start + count] = 1 + _is_task(scores.tags[1:-1])
    guard = min(scores.guard for scores in passes)
    tags, parents, children, lengths = whole
    return Stitched(Scores(tags, parents, children, lengths, guard), _agree(task), STRIDE)


def _per_token(scores: Scores) -> tuple[Floats, Floats, Floats, Floats]:
    return scores.tags, scores.parents, scores.children, scores.lengths


def _is_task(tags: Floats) -> npt.NDArray[np.int8]:
    best = tags.argmax(axis=1)
    return np.isin(best, [TAG_INDEX["task-begin"], TAG_INDEX["task"]]).astype(np.int8)


def _agree(task: npt.NDArray[np.int8]) -> bool:
    """`task` [windows, tokens]: 0 unseen, 1 other text, 2 sub-task text."""
    for before, after in pairwise(task):
        both = (before > 0) & (after > 0)
        if both.any() and (before == after)[both].mean() < AGREEMENT:
            return False
    return True
