"""The tag of each token: which role its clause has, and for constraints whom they bind."""

from __future__ import annotations

from typing import Literal, get_args

from decomp_router.plan import Clause, Role

Tag = Literal[
    "none",
    "task-begin",
    "task",
    "context",
    "persona",
    "constraint-one",
    "constraint-each",
    "constraint-joint",
    "pasted",
    "greeting",
    "meta",
]
TAGS: tuple[Tag, ...] = get_args(Tag)
TAG_INDEX = {tag: index for index, tag in enumerate(TAGS)}


def tag_of(clause: Clause) -> Tag:
    """The tag of a labelled clause that is no sub-task."""
    if clause.role != "constraint":
        assert clause.role != "task", "sub-tasks are tagged by their span"
        return clause.role
    if clause.target == "each":
        return "constraint-each"
    return "constraint-joint" if clause.target == "joint" else "constraint-one"


def role_of(tag: Tag) -> Role:
    """The role that a tag stands for."""
    assert tag != "none", "text between clauses has no role"
    if tag == "task-begin":
        return "task"
    if tag == "constraint-one" or tag == "constraint-each" or tag == "constraint-joint":
        return "constraint"
    return tag
