"""From the network's scores to a plan: spans from tags, edges from pair scores, doubt into order."""

from __future__ import annotations

from dataclasses import dataclass, replace

import networkx as nx
import numpy as np
import numpy.typing as npt

from decomp_router.decompose.evidence import Evidence
from decomp_router.decompose.labels import TAG_INDEX, role_of
from decomp_router.decompose.network import Scores
from decomp_router.decompose.segments import Doubles, Segment, segments
from decomp_router.decompose.thresholds import Thresholds
from decomp_router.plan import Clause, Plan, Subtask

_SENTENCE_ENDS = ".?!;:"
_SURELY_ASKED = 0.95
"""Mean probability of being sub-task text from which up a single ask is cut out of its prompt."""


_NEVER = 1e-6
_UNDERSTATED = 1.0
"""Log-odds by which the mean over an ask's words understates that it is one: they doubt where it ends as well."""


@dataclass(frozen=True)
class Reading:
    """A plan and, in one sentence, why it is as parallel as it is."""

    plan: Plan
    reason: str
    evidence: Evidence | None = None
    """What spoke for and against a fan-out, where there was anything to run at the same time."""


def softmax(logits: npt.NDArray[np.float32]) -> Doubles:
    """Along the last axis, float64."""
    shifted = np.exp(logits.astype(np.float64) - logits.max(axis=-1, keepdims=True))
    result: Doubles = shifted / shifted.sum(axis=-1, keepdims=True)
    return result


def pair_logits(scores: Scores, tasks: list[Segment]) -> Doubles:
    """[tasks, tasks]: logit that j needs i, against 0 for independence."""
    parents = np.stack([scores.parents[t.first + 1 : t.last + 2].mean(0) for t in tasks])
    children = np.stack([scores.children[t.first + 1 : t.last + 2].mean(0) for t in tasks])
    logits: Doubles = (parents @ children.T).astype(np.float64)
    return logits


def independence(forward: float, backward: float) -> float:
    """Log-odds that two sub-tasks are independent, from the logits of both directions (softmax against 0)."""
    return -float(np.logaddexp(forward, backward))


def probability(log_odds: float) -> float:
    """The logistic function, without overflow."""
    return float(0.5 * (1.0 + np.tanh(0.5 * log_odds)))


def read_freely(prompt: str, spans: npt.NDArray[np.int64], scores: Scores, thresholds: Thresholds) -> Reading:
    """The plan of a prompt, as wide as its pairs and constraints allow; `spans` [prompt tokens, 2] as in Encoding."""
    tags = softmax(scores.tags[1 : len(spans) + 1])
    found = segments(tags, spans) if len(spans) else []
    tasks = [s for s in found if s.tag == "task"]
    if len(tasks) < 2:
        return Reading(gathered(_one_task(prompt, spans, found, tags)), "one task")
    logits = pair_logits(scores, tasks)
    edges, doubt = _edges(logits, thresholds.independent)
    plan = _plan(prompt, spans, found, edges, scores)
    if not plan.fans_out:
        return Reading(gathered(plan), doubt or "no two sub-tasks are independent")
    evidence = Evidence(scores.guard, _weakest(plan, logits), _faintest(plan, tasks, tags))
    joint = _joint(tags, found)
    if joint >= thresholds.joint:
        return Reading(chain(plan), f"a constraint on the whole answer ties the parts (p={joint:.2f})", evidence)
    return Reading(plan, f"width {plan.width}; {doubt}" if doubt else f"{plan.width} independent sub-tasks", evidence)


def settle(reading: Reading, thresholds: Thresholds) -> Reading:
    """The same where its evidence suffices for a fan-out, else its sub-tasks one after the other."""
    if reading.evidence is None or not reading.plan.fans_out:
        return reading
    certainty = reading.evidence.certainty
    if certainty >= thresholds.certainty:
        return reading
    short = f"log-odds {certainty:.1f} of {thresholds.certainty:.1f}"
    reason = f"not sure enough that any parts are independent ({short})"
    return Reading(chain(reading.plan), reason, reading.evidence)


def read(prompt: str, spans: npt.NDArray[np.int64], scores: Scores, thresholds: Thresholds) -> Reading:
    """The plan of a prompt."""
    return settle(read_freely(prompt, spans, scores, thresholds), thresholds)


def _one_task(prompt: str, spans: npt.NDArray[np.int64], found: list[Segment], tags: Doubles) -> Plan:
    """The ask alone where it is surely the ask; else the whole prompt is the sub-task."""
    task = next((s for s in found if s.tag == "task"), None)
    if task is None:
        return Plan.atomic(prompt)
    asked = tags[task.first : task.last + 1, [TAG_INDEX["task-begin"], TAG_INDEX["task"]]].sum(axis=1).mean()
    if asked < _SURELY_ASKED:
        return Plan.atomic(prompt)
    start, end = int(spans[task.first][0]), int(spans[task.last][1])
    return Plan(prompt, (Subtask("t1", start, end),), _clauses(spans, found, ["t1"]))


def _edges(logits: Doubles, independent: float) -> tuple[list[tuple[int, int]], str]:
    """Edges (parent, child) between all pairs that are not surely independent, and the first doubt met."""
    edges, doubt = [], ""
    for i in range(len(logits)):
        for j in range(i + 1, len(logits)):
            chance = probability(independence(logits[i, j], logits[j, i]))
            if chance >= independent:
                continue
            edges.append((i, j) if logits[i, j] >= logits[j, i] else (j, i))
            if chance >= 0.5 and not doubt:
                doubt = f"independence of t{i + 1} and t{j + 1} is uncertain (p={chance:.2f})"
    return edges, doubt


def _weakest(plan: Plan, logits: Doubles) -> float:
    """Log-odds of the least independent pair among those that may run at the same time."""
    return min(
        independence(logits[i, j], logits[j, i])
        for i, a in enumerate(plan.subtasks)
        for j, b in enumerate(plan.subtasks[i + 1 :], i + 1)
        if plan.concurrent(a.id, b.id)
    )


def _faintest(plan: Plan, tasks: list[Segment], tags: Doubles) -> float:
    """Log-odds that the least ask-like of the sub-tasks that may run at the same time is one."""
    asked = tags[:, [TAG_INDEX["task-begin"], TAG_INDEX["task"]]].sum(axis=1)
    means = [
        float(asked[task.first : task.last + 1].mean())
        for task, of in zip(tasks, plan.subtasks, strict=True)
        if any(plan.concurrent(of.id, other.id) for other in plan.subtasks if other is not of)
    ]
    least = min(max(min(means), _NEVER), 1 - _NEVER)
    return float(np.log(least / (1 - least))) + _UNDERSTATED


def _plan(
    prompt: str,
    spans: npt.NDArray[np.int64],
    found: list[Segment],
    edges: list[tuple[int, int]],
    scores: Scores,
) -> Plan:
    tasks = [s for s in found if s.tag == "task"]
    ends = [_reach(prompt, spans, found, task) for task in tasks]
    ids = [f"t{i + 1}" for i in range(len(tasks))]
    graph = _acyclic(len(tasks), edges)
    subtasks = tuple(
        Subtask(
            id=ids[i],
            start=int(spans[task.first][0]),
            end=int(spans[ends[i]][1]),
            deps=tuple(ids[parent] for parent in sorted(graph.predecessors(i))),
            length=int(np.argmax(scores.lengths[task.first + 1 : task.last + 2].mean(0))),
        )
        for i, task in enumerate(tasks)
    )
    covered = {place for task, end in zip(tasks, ends, strict=True) for place in range(task.first, end + 1)}
    apart = [s for s in found if s.tag == "task" or s.first not in covered]
    return Plan(prompt, subtasks, _clauses(spans, apart, ids))


def _reach(prompt: str, spans: npt.NDArray[np.int64], found: list[Segment], task: Segment) -> int:
    """The last token of an ask with its own conditions: background or a constraint on it that ends its sentence."""
    last = task.last
    tags = {place: s.tag for s in found for place in range(s.first, s.last + 1)}
    for place in range(task.last + 1, len(spans)):
        tag = tags.get(place)
        ends = "\n" in prompt[spans[place - 1][1] : spans[place][0]] or prompt[spans[place][0]] in _SENTENCE_ENDS
        if ends or tag not in (None, "context", "constraint-one"):
            break
        if tag is not None:
            last = place
    return last


def _acyclic(count: int, edges: list[tuple[int, int]]) -> nx.DiGraph:
    """Transitive reduction of the edges; where they contradict each other, a chain in text order."""
    graph: nx.DiGraph = nx.DiGraph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(edges)
    if not nx.is_directed_acyclic_graph(graph):
        graph.clear_edges()
        graph.add_edges_from((i, i + 1) for i in range(count - 1))
    return nx.transitive_reduction(graph)


def _clauses(spans: npt.NDArray[np.int64], found: list[Segment], ids: list[str]) -> tuple[Clause, ...]:
    clauses, tasks_before = [], 0
    for segment in found:
        if segment.tag == "task":
            tasks_before += 1
            continue
        target = {"constraint-each": "each", "constraint-joint": "joint"}.get(segment.tag)
        if segment.tag == "constraint-one":  # a constraint follows the ask that it binds
            target = ids[max(tasks_before, 1) - 1]
        role = role_of(segment.tag)
        clauses.append(Clause(int(spans[segment.first][0]), int(spans[segment.last][1]), role, target))
    return tuple(clauses)


@dataclass(frozen=True)
class Signs:
    """What a pass over part of a prompt saw: spans that look like asks, and how surely a joint constraint."""

    asks: frozenset[tuple[int, int]]
    joint: float


def signs_of(scores: Scores, spans: npt.NDArray[np.int64]) -> Signs:
    """All signs, also those too weak to be acted on by themselves."""
    tags = softmax(scores.tags[1 : len(spans) + 1])
    found = segments(tags, spans)
    asks = ((int(spans[s.first][0]), int(spans[s.last][1])) for s in found if s.tag == "task")
    return Signs(frozenset(asks), _joint(tags, found))


def _joint(tags: Doubles, found: list[Segment]) -> float:
    """The strongest sign of a joint constraint: mean over its segment, or over any other constraint's."""
    column = tags[:, TAG_INDEX["constraint-joint"]]
    constraints = [s for s in found if s.tag.startswith("constraint")]
    return max((float(column[s.first : s.last + 1].mean()) for s in constraints), default=0.0)


def chain(plan: Plan) -> Plan:
    """The same sub-tasks one after the other: an order that keeps every edge, text order where free."""
    place = {task.id: task.start for task in plan.subtasks}
    order = list(nx.lexicographical_topological_sort(plan.graph, key=place.__getitem__))
    previous = dict(zip(order[1:], order, strict=False))
    subtasks = tuple(replace(task, deps=(previous[task.id],) if task.id in previous else ()) for task in plan.subtasks)
    return gathered(replace(plan, subtasks=subtasks))


def gathered(plan: Plan) -> Plan:
    """A linear plan whose sub-tasks take with them what follows and belongs to them: background, and constraints that
    bind neither all nor each. The engine answers such a prompt as a whole, so nothing of it may seem left out."""
    ends, kept = {task.id: task.end for task in plan.subtasks}, []
    current: Subtask | None = None
    for span in plan.spans:
        if isinstance(span, Subtask):
            current = span
        elif current and (span.role == "context" or (span.role == "constraint" and span.target == current.id)):
            ends[current.id] = span.end
        else:
            kept.append(span)
            current = None
    subtasks = tuple(replace(task, end=ends[task.id]) for task in plan.subtasks)
    return replace(plan, subtasks=subtasks, clauses=tuple(kept))
