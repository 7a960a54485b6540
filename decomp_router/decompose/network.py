"""The seam to the network: one forward pass over a prompt gives everything a plan needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import onnxruntime

from decomp_router.decompose.tokens import Ids

Floats = npt.NDArray[np.float32]

OUTPUTS = ("tags", "parents", "children", "lengths", "guard")


@dataclass(frozen=True)
class Scores:
    """Logits of one forward pass over L positions.

    tags [L, tags]; parents, children [L, D]: `mean(parents over i) . mean(children over j)` is the logit that
    the sub-task at j needs the one at i, against 0 for independence; lengths [L, length classes];
    guard: logit that the prompt holds anything to run at the same time.
    """

    tags: Floats
    parents: Floats
    children: Floats
    lengths: Floats
    guard: float


class Network(Protocol):
    """Anything that reads one encoded prompt."""

    def run(self, ids: Ids, layout: Ids) -> Scores:
        """One forward pass; `ids`, `layout` int64 [L], L <= 512."""
        ...


def one_thread() -> onnxruntime.SessionOptions:
    """Sessions compute on the thread that calls them."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


class OnnxNetwork:
    """The int8 network through onnxruntime, on one thread (a second one costs more than it brings)."""

    def __init__(self, path: Path) -> None:
        self._session = onnxruntime.InferenceSession(str(path), one_thread(), providers=["CPUExecutionProvider"])

    def run(self, ids: Ids, layout: Ids) -> Scores:
        """One forward pass; `ids`, `layout` int64 [L], L <= 512."""
        feeds = {"ids": ids[None], "layout": layout[None]}
        tags, parents, children, lengths, guard = self._session.run(list(OUTPUTS), feeds)
        return Scores(tags[0], parents[0], children[0], lengths[0], float(guard[0]))
