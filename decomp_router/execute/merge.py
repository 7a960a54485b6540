"""Sections to one answer in prompt order, each held until it is seen to keep to its own part."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import replace

from decomp_router.execute.over_answer import OverAnswer
from decomp_router.execute.section import CONTENT, Piece, Section
from decomp_router.plan import Plan, Subtask

SEPARATOR = "\n\n"
HELD_TOKENS = 64
"""So much of a section is read before any of it is let out."""


class NotMergeable(Exception):  # noqa: N818 - an outcome, not a fault
    """Why these sections make no answer; nothing of them has been let out."""


class Merge:
    """Reads the sections of a plan in turn; the one whose turn it is streams live."""

    def __init__(self, plan: Plan, sections: Mapping[str, Section]) -> None:
        self._plan = plan
        self._sections = sections
        self._said = False
        self._written = False

    async def pieces(self) -> AsyncGenerator[Piece, None]:
        """The merged answer: all reasoning first, then the sections. Raises NotMergeable before the first piece."""
        first, *_ = ordered = [self._sections[task.id] for task in self._plan.subtasks]
        await first.until(lambda: first.reasoned or _held(first))
        if any(section.reasoned for section in ordered):
            async for piece in self._reasoning(ordered):
                self._said = True
                yield piece
        for task in self._plan.subtasks:
            async for piece in self._joined(task):
                self._written = self._written or bool(piece.text)
                self._said = self._said or self._written
                yield piece

    async def _reasoning(self, ordered: list[Section]) -> AsyncIterator[Piece]:
        """Reasoning never follows content, so the last section's has come before the first word of the first."""
        for section in ordered:
            async for piece in section.reasoning():
                yield piece

    async def _joined(self, task: Subtask) -> AsyncIterator[Piece]:
        """A section without blanks around it, set off from what was said before."""
        section = self._sections[task.id]
        blank, begun, tokens = SEPARATOR if self._written else "", False, 0
        async for piece in self._kept(task, section):
            tokens += piece.tokens
            text = piece.text if begun else piece.text.lstrip()
            solid = text.rstrip()
            if not solid:
                blank += text
                continue
            yield Piece(CONTENT, blank + solid, tokens)
            blank, begun, tokens = text[len(solid) :], True, 0
        yield Piece(CONTENT, "", section.uncounted)

    async def _kept(self, task: Subtask, section: Section) -> AsyncIterator[Piece]:
        """A section's content, up to where it restates a sibling's task."""
        await section.until(lambda: _held(section))
        cut = self._over_answer(task).find(section.text)
        if not self._said:
            self._check(section, cut)
        left = cut or sys.maxsize  # what starts with a sibling's part is kept whole: its own may be in there
        async for piece in section.content():
            yield replace(piece, text=piece.text[:left])
            left -= len(piece.text)
            if left <= 0:
                return

    def _check(self, section: Section, cut: int | None) -> None:
        if cut is not None:
            raise NotMergeable("the first section answered another part as well")
        if section.text.lstrip().startswith("<think>"):
            raise NotMergeable("the model reasons inside its answer")

    def _over_answer(self, task: Subtask) -> OverAnswer:
        siblings = [self._plan.text(other) for other in self._plan.subtasks if other.id != task.id]
        return OverAnswer(self._plan.text(task), siblings)


def _held(section: Section) -> bool:
    return section.done.is_set() or sum(piece.field == CONTENT for piece in section.pieces) >= HELD_TOKENS
