"""The domain: what a prompt holds (clauses, sub-tasks, their order) and what was decided about it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Literal, get_args

import networkx as nx

Role = Literal["task", "context", "persona", "constraint", "pasted", "greeting", "meta"]
PlanClass = Literal["atomic", "parallel", "dependent", "mixed"]
Mode = Literal["linear", "fanout"]

ROLES: tuple[Role, ...] = get_args(Role)
LENGTH_CLASSES = 4
"""Expected answer: 0 up to 30 tokens, 1 up to 160, 2 up to 400, 3 more."""


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of the prompt, in Unicode code points (end exclusive), and what it is there for.

    `target` is set on constraints only: a sub-task id, "each", or "joint" (the whole answer).
    """

    start: int
    end: int
    role: Role
    target: str | None = None

    def __post_init__(self) -> None:
        assert 0 <= self.start < self.end, f"empty clause {self.start}..{self.end}"
        assert self.role in ROLES, f"unknown role {self.role!r}"
        assert self.target is None or self.role == "constraint", "only a constraint has a target"


@dataclass(frozen=True, slots=True)
class Subtask:
    """One unit of work: a span of the prompt, its direct parents and the length class of its answer."""

    id: str
    start: int
    end: int
    deps: tuple[str, ...] = ()
    length: int = 1

    def __post_init__(self) -> None:
        assert 0 <= self.start < self.end, f"sub-task {self.id}: empty span {self.start}..{self.end}"
        assert self.id not in self.deps, f"sub-task {self.id} depends on itself"
        assert 0 <= self.length < LENGTH_CLASSES, f"sub-task {self.id}: length class {self.length}"


@dataclass(frozen=True)
class Plan:
    """The sub-tasks of one prompt as a DAG, in prompt order, with the clauses that are no sub-task.

    Invariants: spans lie inside the prompt, sub-tasks are disjoint, in text order, and acyclic.
    """

    prompt: str
    subtasks: tuple[Subtask, ...]
    clauses: tuple[Clause, ...] = ()

    def __post_init__(self) -> None:
        ids = [task.id for task in self.subtasks]
        assert len(set(ids)) == len(ids), f"sub-task ids repeat: {ids}"
        for task in self.subtasks:
            assert set(task.deps) <= set(ids), f"sub-task {task.id} needs unknown {task.deps}"
        for span in self.spans:
            assert span.end <= len(self.prompt), f"span {span.start}..{span.end} leaves the prompt"
        for before, after in zip(self.subtasks, self.subtasks[1:], strict=False):
            assert before.end <= after.start, f"sub-tasks {before.id} and {after.id} overlap"
        assert nx.is_directed_acyclic_graph(self.graph), "sub-tasks wait for each other in a circle"

    @property
    def spans(self) -> tuple[Subtask | Clause, ...]:
        """Sub-tasks and other clauses together, in text order."""
        both: list[Subtask | Clause] = [*self.subtasks, *self.clauses]
        return tuple(sorted(both, key=lambda span: span.start))

    @cached_property
    def graph(self) -> nx.DiGraph[str]:
        """Edges run from a parent to the sub-task that needs it."""
        graph: nx.DiGraph[str] = nx.DiGraph()
        graph.add_nodes_from(task.id for task in self.subtasks)
        graph.add_edges_from((dep, task.id) for task in self.subtasks for dep in task.deps)
        return graph

    @cached_property
    def closure(self) -> nx.DiGraph[str]:
        """Every ancestor joined to every descendant."""
        closure: nx.DiGraph[str] = nx.transitive_closure_dag(self.graph)
        return closure

    @cached_property
    def width(self) -> int:
        """Antichain width: how many sub-tasks can run at the same time (Dilworth: nodes - largest matching)."""
        if not self.subtasks:
            return 0
        bipartite: nx.Graph[tuple[str, str]] = nx.Graph()
        parents = [("parent", task.id) for task in self.subtasks]
        bipartite.add_nodes_from(parents)
        bipartite.add_edges_from((("parent", a), ("child", b)) for a, b in self.closure.edges)
        matching = nx.bipartite.hopcroft_karp_matching(bipartite, top_nodes=parents)
        return len(self.subtasks) - len(matching) // 2

    @property
    def fans_out(self) -> bool:
        """The DAG has two or more nodes that can run at the same time: its closure is no total order."""
        count = len(self.subtasks)
        return bool(2 * self.closure.number_of_edges() < count * (count - 1))

    @property
    def cls(self) -> PlanClass:
        """Class by the shape of the DAG alone."""
        if len(self.subtasks) < 2:
            return "atomic"
        if not self.fans_out:
            return "dependent"
        return "mixed" if self.graph.number_of_edges() else "parallel"

    @property
    def substantial(self) -> bool:
        """Two sub-tasks of length class 2 or more can run at the same time."""
        return self.promises(2)

    def promises(self, length: int) -> bool:
        """Two sub-tasks of at least this length class can run at the same time."""
        long = [task.id for task in self.subtasks if task.length >= length]
        return any(self.concurrent(a, b) for a, b in combinations(long, 2))

    def concurrent(self, a: str, b: str) -> bool:
        """Neither of two sub-tasks waits for the other."""
        return not (self.closure.has_edge(a, b) or self.closure.has_edge(b, a))

    def text(self, span: Subtask | Clause) -> str:
        """The words of a span, verbatim."""
        return self.prompt[span.start : span.end]

    def subtask(self, task_id: str) -> Subtask:
        """The sub-task of an id."""
        return next(task for task in self.subtasks if task.id == task_id)

    @classmethod
    def atomic(cls, prompt: str) -> Plan:
        """The whole prompt as one sub-task; an empty prompt holds none."""
        stripped = prompt.strip()
        if not stripped:
            return cls(prompt, ())
        start = prompt.index(stripped)
        return cls(prompt, (Subtask("t1", start, start + len(stripped)),))


@dataclass(frozen=True)
class Decision:
    """How a request will run, and why."""

    mode: Mode
    reasons: tuple[str, ...]
    plan: Plan | None = None

    def __post_init__(self) -> None:
        assert self.reasons, "a decision states its reasons"
        assert self.mode == "linear" or (self.plan is not None and self.plan.fans_out), (
            "only a plan with concurrent sub-tasks fans out"
        )

    @property
    def width(self) -> int:
        """Branches that run at the same time: 1 on a linear run."""
        return self.plan.width if self.mode == "fanout" and self.plan is not None else 1
