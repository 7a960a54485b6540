"""The writing aid."""

from __future__ import annotations

import pytest

from decomp_gauntlet.cases import CaseError
from decomp_model.markup import compile_text

SOURCE = """\
=== mixed en fan-in,context
@user hello\\nthere
⟦greeting|Hi.⟧ ⟦a 1|Do A⟧, ⟦b 2|do B⟧,
and ⟦c 1 < a, b|compare⟧. ⟦constraint b|B in verse.⟧

=== atomic es
⟦a 0|¿qué hora es?⟧
"""


def test_marks_become_spans() -> None:
    mixed, atomic = compile_text(SOURCE, "x")
    assert mixed.prompt == "Hi. Do A, do B,\nand compare. B in verse."
    assert mixed.truth is not None
    assert [(t.id, mixed.truth.text(t), t.deps, t.length) for t in mixed.truth.subtasks] == [
        ("a", "Do A", (), 1), ("b", "do B", (), 2), ("c", "compare", ("a", "b"), 1)]  # fmt: skip
    assert [(c.role, c.target) for c in mixed.truth.clauses] == [("greeting", None), ("constraint", "b")]
    assert mixed.context == (("user", "hello\nthere"),)
    assert (mixed.id, atomic.id, atomic.lang, atomic.cls) == ("x-0001", "x-0002", "es", "atomic")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("=== atomic en\nno marks", "no sub-task"),
        ("=== atomic en\n⟦a 1|open", "not closed"),
        ("=== atomic en\n⟦what|x⟧", "neither"),
        ("=== atomic en\n⟦a 1|x⟧ ⟦constraint|y⟧", "has a target"),
        ("=== parallel en\n⟦a 1|x⟧", "its DAG says 'atomic'"),
        ("=== en\n⟦a 1|x⟧", "header"),
    ],
)
def test_mistakes_name_the_line(body: str, message: str) -> None:
    with pytest.raises(CaseError, match=message) as caught:
        compile_text("\n" + body, "x")
    assert str(caught.value).startswith("line 2: ")
