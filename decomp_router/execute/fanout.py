"""Runs the branches of a plan, each as soon as its parents are done, and merges what they say."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from decomp_router.execute.answer import Ending, usage_of
from decomp_router.execute.branch import Branch
from decomp_router.execute.branches import Branches
from decomp_router.execute.limits import Finish, Limits
from decomp_router.execute.merge import Merge, NotMergeable
from decomp_router.execute.section import Piece, Section
from decomp_router.execute.upstream import Upstream, UpstreamError, UpstreamRequest
from decomp_router.plan import Plan, Subtask

Emit = Callable[[Piece], Awaitable[None]]
Clock = Callable[[], float]


class FanoutFailed(Exception):  # noqa: N818 - the name says it
    """The fan-out came to no end; `sent` says whether part of its answer is out already."""

    def __init__(self, reason: str, sent: bool) -> None:
        super().__init__(reason)
        self.reason, self.sent = reason, sent


@dataclass
class Timing:
    """When a branch started, and when it ended, in seconds since the fan-out began."""

    id: str
    started_s: float | None = None
    ended_s: float | None = None
    tokens: int = 0


class Fanout:
    """One request on its way through several branches."""

    def __init__(
        self,
        upstream: Upstream,
        request: UpstreamRequest,
        body: Mapping[str, Any],
        plan: Plan,
        width: int,
        clock: Clock = time.perf_counter,
    ) -> None:
        assert width >= 1, "a fan-out runs at least one branch at a time"
        self.width = width
        self.timings = {task.id: Timing(task.id) for task in plan.subtasks}
        self._upstream, self._request, self._plan, self._clock = upstream, request, plan, clock
        self._branches, self._limits = Branches(body, plan), Limits.of(body)
        self._sections = {task.id: Section() for task in plan.subtasks}
        self._slots = asyncio.Semaphore(width)
        self._sent = False

    @property
    def head(self) -> dict[str, Any]:
        """Id, model and the like: those of the first branch, so that the answer has one of each."""
        return self._sections[self._plan.subtasks[0].id].head

    async def run(self, emit: Emit) -> Ending:
        """Hands out the merged answer bit by bit; raises FanoutFailed. Cancelling it cancels every branch."""
        self._begun = self._clock()
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._branch(task)) for task in self._plan.subtasks]
                await self._merge(emit)
                for task in tasks:
                    task.cancel()
        except* (UpstreamError, NotMergeable) as failures:
            raise FanoutFailed(str(failures.exceptions[0]), self._sent) from failures
        return Ending(self._finish(), usage_of(self._sections.values()))

    async def _merge(self, emit: Emit) -> None:
        merged = Merge(self._plan, self._sections).pieces()
        async with aclosing(merged), aclosing(self._limits.apply(merged)) as pieces:
            async for piece in pieces:
                self._sent = True
                await emit(piece)

    async def _branch(self, task: Subtask) -> None:
        ancestors = self._branches.ancestors(task)
        for name in ancestors:
            await self._sections[name].done.wait()
        async with self._slots:
            answers = {name: self._sections[name].text.strip() for name in ancestors}
            request = replace(self._request, body=self._branches.body(task, answers))
            await self._timed(task.id, Branch(self._upstream, request, self._sections[task.id]))

    async def _timed(self, name: str, branch: Branch) -> None:
        timing = self.timings[name]
        timing.started_s = self._clock() - self._begun
        try:
            await branch.run()
        finally:
            timing.ended_s, timing.tokens = self._clock() - self._begun, branch.section.tokens

    def _finish(self) -> Finish:
        cut = any(section.finish == "length" for section in self._sections.values())
        return self._limits.finish or ("length" if cut else "stop")
