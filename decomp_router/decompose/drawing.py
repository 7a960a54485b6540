"""A plan in the terminal: what runs at the same time, what waits for what, what else the prompt holds."""

from __future__ import annotations

import networkx as nx
from rich.console import Group
from rich.text import Text
from rich.tree import Tree

from decomp_router.decompose.reading import Reading
from decomp_router.plan import Plan, Subtask

_LENGTHS = ("a few words", "a paragraph", "several paragraphs", "a page or more")


def drawing(reading: Reading) -> Group:
    """One branch a step; the sub-tasks of a step run at the same time."""
    plan = reading.plan
    parts: list[Tree] = [_steps(plan)]
    if plan.clauses:
        other = Tree("[dim]not sub-tasks[/]", guide_style="dim")
        for clause in plan.clauses:
            target = f" for {clause.target}" if clause.target else ""
            other.add(Text.assemble((f"{clause.role}{target}: ", "dim"), _short(plan.text(clause))))
        parts.append(other)
    return Group(*parts)


def _steps(plan: Plan) -> Tree:
    tree = Tree(f"[bold]{plan.cls}[/], width {plan.width}")
    for number, step in enumerate(nx.topological_generations(plan.graph), 1):
        together = " - at the same time" if len(step) > 1 else ""
        branch = tree.add(f"step {number}{together}")
        for task_id in sorted(step, key=lambda task_id: plan.subtask(task_id).start):
            branch.add(_line(plan, plan.subtask(task_id)))
    return tree


def _line(plan: Plan, task: Subtask) -> Text:
    needs = f" needs {', '.join(task.deps)}" if task.deps else ""
    return Text.assemble(
        (task.id, "bold cyan"), (needs, "yellow"), f"  {_short(plan.text(task))}  ", (_LENGTHS[task.length], "dim")
    )


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 100 else flat[:97] + "..."
