"""From tag probabilities to segments: the likeliest runs of equal tags (Viterbi)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from decomp_router.decompose.labels import TAG_INDEX, TAGS, Tag

Doubles = npt.NDArray[np.float64]

_BRIDGE = 2
"""Untagged tokens inside a sub-task that do not end it (a stray comma, a quote mark)."""
_CHANGE = 1.0
"""Log-weight that a change of tag must outweigh; on held-out prompts 1 gave the best spans of 0 to 6."""
_TINY = 3.0
"""Log-weight against a sub-task of a single token."""


@dataclass(frozen=True)
class Segment:
    """Prompt tokens first..last (inclusive) with one tag."""

    tag: Tag
    first: int
    last: int


def segments(tags: Doubles, spans: npt.NDArray[np.int64]) -> list[Segment]:
    """The likeliest runs of equal tags over prompt tokens; `tags` [prompt tokens, tags] are probabilities.

    Tokens that share a character ("…" is three of them) share the tag of the first.
    """
    found: list[Segment] = []
    for token, index in enumerate(likeliest(np.log(tags + 1e-9))):
        if found and found[-1].last == token - 1 and spans[token][0] < spans[token - 1][1]:
            found[-1] = replace(found[-1], last=token)
            continue
        tag = TAGS[int(index)]
        if tag == "none":
            continue
        last = found[-1] if found else None
        kind: Tag = "task" if tag == "task-begin" else tag
        bridge = _BRIDGE if kind == "task" else 0
        if last and tag != "task-begin" and last.tag == kind and token - last.last <= bridge + 1:
            found[-1] = replace(found[-1], last=token)
        else:
            found.append(Segment(kind, token, token))
    return found


def _transitions() -> Doubles:
    """Log-weights [from, to] of going from one tag to the next: staying is free, a change costs, and sub-task
    text follows its beginning, or untagged text inside it."""
    weights = np.full((len(TAGS), len(TAGS)), -_CHANGE)
    np.fill_diagonal(weights, 0.0)
    none, begin, inside = (TAG_INDEX[tag] for tag in ("none", "task-begin", "task"))
    weights[:, inside] = -np.inf
    weights[none, inside] = -_CHANGE
    weights[[begin, inside], inside] = 0.0
    weights[begin, begin] = -_TINY
    return weights


_TRANSITIONS = _transitions()


def likeliest(logs: Doubles) -> npt.NDArray[np.int64]:
    """The tag sequence of the highest total weight (Viterbi 1967); `logs` [tokens, tags] log-probabilities."""
    best = logs[0].copy()
    best[TAG_INDEX["task"]] = -np.inf
    came_from = np.zeros(logs.shape, np.int64)
    for token in range(1, len(logs)):
        routes = best[:, None] + _TRANSITIONS
        came_from[token] = routes.argmax(axis=0)
        best = routes.max(axis=0) + logs[token]
    path = np.zeros(len(logs), np.int64)
    path[-1] = best.argmax()
    for token in range(len(logs) - 1, 0, -1):
        path[token - 1] = came_from[token][path[token]]
    return path
