"""A case taken apart into labelled stretches of text, changed, and put together with its labels in place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from decomp_gauntlet.cases import Case
from decomp_router.plan import Clause, Plan, Subtask


@dataclass(frozen=True)
class Piece:
    """A stretch of prompt with its label, if any; `label` is placed at 0..len(text)."""

    text: str
    label: Subtask | Clause | None = None


def pieces_of(case: Case) -> list[Piece]:
    """A case as labelled and unlabelled stretches, in text order."""
    assert case.truth is not None
    pieces, position = [], 0
    for span in case.truth.spans:
        pieces += [Piece(case.prompt[position : span.start]), Piece(case.truth.text(span), span)]
        position = span.end
    return [piece for piece in (*pieces, Piece(case.prompt[position:])) if piece.text]


def compose(pieces: Sequence[Piece], like: Case) -> Case:
    """The case that a sequence of pieces spells; language and earlier messages of `like`."""
    prompt = ""
    subtasks: list[Subtask] = []
    clauses: list[Clause] = []
    for piece in pieces:
        start, prompt = len(prompt), prompt + piece.text
        if piece.label is not None and piece.text:
            placed = replace(piece.label, start=start, end=len(prompt))
            if isinstance(placed, Subtask):
                subtasks.append(placed)
            else:
                clauses.append(placed)
    truth = Plan(prompt, tuple(subtasks), tuple(clauses))
    return replace(like, prompt=prompt, truth=truth, fanout_expected=truth.fans_out)


def renamed(pieces: Sequence[Piece], prefix: str) -> list[Piece]:
    """The same pieces with sub-task ids made unique, also in what refers to them."""

    def rename(label: Subtask | Clause | None) -> Subtask | Clause | None:
        if isinstance(label, Subtask):
            return replace(label, id=prefix + label.id, deps=tuple(prefix + dep for dep in label.deps))
        if label is not None and label.target not in (None, "each", "joint"):
            return replace(label, target=f"{prefix}{label.target}")
        return label

    return [replace(piece, label=rename(piece.label)) for piece in pieces]
