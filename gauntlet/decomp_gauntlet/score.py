"""Scores of one predicted plan against one labelled case, by the rules of docs/gauntlet-format.md."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from decomp_gauntlet.cases import Case
from decomp_router.plan import Plan, Subtask


@dataclass(frozen=True)
class Counts:
    """True positives, false positives, false negatives."""

    hit: int = 0
    extra: int = 0
    lost: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.hit + other.hit, self.extra + other.extra, self.lost + other.lost)

    @property
    def f1(self) -> float | None:
        """None where there was nothing to find and nothing was found."""
        whole = 2 * self.hit + self.extra + self.lost
        return 2 * self.hit / whole if whole else None


@dataclass(frozen=True)
class CaseScore:
    """What one prediction got right and wrong."""

    case: Case
    predicted_fanout: bool
    dangerous: tuple[str, ...] = ()
    """Why this is a dangerous false parallel; empty when it is none."""
    reversed_pairs: int = 0
    dropped: int = 0
    over_serialised_pairs: int = 0
    edges: Counts = Counts()
    spans: Counts = Counts()
    predicted_cls: str = "unlabelled"
    lengths: tuple[tuple[int, int], ...] = ()
    """(labelled, predicted) length class of each sub-task whose span was found."""
    chance: float | None = None
    """How probable the solver held a safe fan-out to be, where it says so."""

    @property
    def miss(self) -> bool:
        """Something could have run at the same time and did not: safe, but slow."""
        return self.case.fanout_expected and not self.predicted_fanout

    @property
    def accurate(self) -> bool:
        """Fan-out as labelled, and nothing dangerous, reversed or dropped."""
        return self.predicted_fanout == self.case.fanout_expected and not (
            self.dangerous or (self.reversed_pairs and self.predicted_fanout) or self.dropped
        )


def score(case: Case, predicted: Plan, chance: float | None = None) -> CaseScore:
    """Score one prediction; the older schema, which labels no sub-tasks, is scored on fan-out alone."""
    fans_out = predicted.fans_out
    if case.truth is None:
        dangerous = ("fans out a prompt that must not",) if fans_out and not case.fanout_expected else ()
        return CaseScore(case, fans_out, dangerous, chance=chance)
    nodes = assign(case.truth, predicted)
    found = span_matches(case.truth, predicted)
    return CaseScore(
        case=case,
        predicted_fanout=fans_out,
        dangerous=tuple(_dangers(case, case.truth, predicted, nodes)) if fans_out else (),
        reversed_pairs=_reversed(case.truth, predicted, nodes),
        dropped=sum(node is None for node in nodes.values()),
        over_serialised_pairs=_over_serialised(case.truth, predicted, nodes) if fans_out else 0,
        edges=_edge_counts(case.truth, predicted, nodes),
        spans=Counts(len(found), len(predicted.subtasks) - len(found), len(case.truth.subtasks) - len(found)),
        predicted_cls=predicted.cls,
        lengths=tuple((quote.length, node.length) for quote, node in found),
        chance=chance,
    )


def assign(truth: Plan, predicted: Plan) -> dict[str, str | None]:
    """The predicted node that covers most of each labelled quote; None for less than half: dropped."""
    nodes: dict[str, str | None] = {}
    for quote in truth.subtasks:
        best = max(predicted.subtasks, key=lambda node: _overlap(quote, node), default=None)
        covered = _overlap(quote, best) if best else 0
        nodes[quote.id] = best.id if best and 2 * covered >= quote.end - quote.start else None
    return nodes


def _overlap(a: Subtask, b: Subtask) -> int:
    return max(0, min(a.end, b.end) - max(a.start, b.start))


def _dangers(case: Case, truth: Plan, predicted: Plan, nodes: dict[str, str | None]) -> list[str]:
    found = []
    if not case.fanout_expected:
        found.append("fans out a prompt that must not")
    for parent, child in truth.closure.edges:
        a, b = nodes[parent], nodes[child]
        if a is None or b is None:
            found.append(f"{parent} -> {child}: a sub-task of a dependency was dropped")
        elif a != b and predicted.concurrent(a, b):
            found.append(f"{parent} -> {child} would run at the same time")
    return found


def _reversed(truth: Plan, predicted: Plan, nodes: dict[str, str | None]) -> int:
    return sum(predicted.closure.has_edge(nodes[child], nodes[parent]) for parent, child in truth.closure.edges)


def _over_serialised(truth: Plan, predicted: Plan, nodes: dict[str, str | None]) -> int:
    count = 0
    for first, second in combinations(nodes, 2):
        a, b = nodes[first], nodes[second]
        if a is not None and b is not None and truth.concurrent(first, second):
            count += a == b or not predicted.concurrent(a, b)
    return count


def _edge_counts(truth: Plan, predicted: Plan, nodes: dict[str, str | None]) -> Counts:
    """On the closure of both: a labelled edge is hit when its ends lie on two nodes joined the same way."""
    labelled = {(nodes[parent], nodes[child]) for parent, child in truth.closure.edges}
    hit = sum(predicted.closure.has_edge(nodes[a], nodes[b]) for a, b in truth.closure.edges)
    extra = sum(edge not in labelled for edge in predicted.closure.edges)
    return Counts(hit, extra, truth.closure.number_of_edges() - hit)


def span_matches(truth: Plan, predicted: Plan) -> list[tuple[Subtask, Subtask]]:
    """(labelled, predicted), one to one at intersection over union >= 0.5; disjoint spans make a match unique but
    for exact halves."""
    found: list[tuple[Subtask, Subtask]] = []
    taken: set[str] = set()
    for quote in truth.subtasks:
        for node in predicted.subtasks:
            shared = _overlap(quote, node)
            union = (quote.end - quote.start) + (node.end - node.start) - shared
            if node.id not in taken and 2 * shared >= union:
                taken.add(node.id)
                found.append((quote, node))
                break
    return found
