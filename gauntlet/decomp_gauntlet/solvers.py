"""What can be judged: the decomposer in this process, one behind a URL, and the two baselines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import httpx

from decomp_gauntlet.cases import Case
from decomp_router.decompose.decomposer import Decomposer
from decomp_router.decompose.reading import chain
from decomp_router.plan import Clause, Plan, Subtask


class SolverError(RuntimeError):
    """The thing under test could not be asked; the message says what to do."""


@dataclass(frozen=True)
class Solved:
    """A plan and, where the solver says so, how probable it holds a safe fan-out to be."""

    plan: Plan
    chance: float | None = None


class Solver(Protocol):
    """Anything that makes a plan of a case's prompt."""

    name: str

    def solve(self, case: Case) -> Solved:
        """The plan of one prompt. Raises SolverError."""
        ...


class InProcess:
    """The decomposer itself."""

    name = "decomposer"

    def __init__(self, decomposer: Decomposer) -> None:
        self._decomposer = decomposer

    def solve(self, case: Case) -> Solved:
        """The plan of one prompt."""
        reading = self._decomposer.read(case.prompt, case.context)
        return Solved(reading.plan, self._decomposer.chance(reading))


class OverHttp:
    """POST /decompose of a running service."""

    def __init__(self, url: str, client: httpx.Client) -> None:
        self.name = url
        self._url, self._client = url.rstrip("/") + "/decompose", client

    def solve(self, case: Case) -> Solved:
        """The plan of one prompt. Raises SolverError where the service is down or answers with something else."""
        messages = [{"role": role, "content": content} for role, content in (*case.context, ("user", case.prompt))]
        try:
            answer = self._client.post(self._url, json={"messages": messages})
            answer.raise_for_status()
            return Solved(plan_of(case.prompt, answer.json()))
        except (httpx.HTTPError, httpx.InvalidURL, KeyError, TypeError, ValueError, AssertionError) as error:
            raise SolverError(
                f"case {case.id}: {self._url} gave no plan: {error!r}; is a decomposer served there?"
            ) from error


def plan_of(prompt: str, body: dict[str, Any]) -> Plan:
    """The plan that a /decompose response spells."""
    subtasks = tuple(
        Subtask(t["id"], t["start"], t["end"], tuple(t["deps"]), t.get("length", 1)) for t in body["subtasks"]
    )
    clauses = tuple(Clause(c["start"], c["end"], c["role"], c.get("target")) for c in body.get("clauses", ()))
    return Plan(prompt, subtasks, clauses)


class NeverSplit:
    """Baseline: every prompt is one task."""

    name = "never split"

    def solve(self, case: Case) -> Solved:
        """One sub-task."""
        return Solved(Plan.atomic(case.prompt))


class AlwaysChain:
    """Baseline: the labelled sub-tasks, each waiting for the one before."""

    name = "always chain"

    def solve(self, case: Case) -> Solved:
        """A chain over the labels; one sub-task where none are labelled."""
        if case.truth is None:
            return Solved(Plan.atomic(case.prompt))
        free = Plan(case.prompt, tuple(Subtask(t.id, t.start, t.end) for t in case.truth.subtasks))
        return Solved(chain(free))
