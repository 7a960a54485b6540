"""A section that goes on to answer a sibling's part."""

from __future__ import annotations

import pytest

from decomp_router.execute.over_answer import OverAnswer

OWN, SIBLING = "Write a haiku about autumn.", "Explain how tides work."


@pytest.mark.parametrize(
    "line",
    [
        "Explain how tides work.",
        "## Explain how tides work",
        "2. **Explain how tides work:**",
        "> explain how tides work",
    ],
)
def test_a_restated_sibling_is_found_where_it_starts(line: str) -> None:
    text = f"Leaves drift on the pond.\n\n{line}\nThe moon pulls."
    assert OverAnswer(OWN, [SIBLING]).find(text) == text.index(line)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Write a haiku about autumn:\nLeaves drift on the pond.",
        "Tides work through the pull of the moon.",
        "To explain how tides work one would need far more room than a haiku has, so here is only autumn, as asked.",
    ],
)
def test_a_section_that_keeps_to_its_part_passes(text: str) -> None:
    assert OverAnswer(OWN, [SIBLING]).find(text) is None


def test_tasks_that_share_most_words_are_told_apart_by_the_rest() -> None:
    check = OverAnswer("Write a haiku about autumn.", ["Write a haiku about winter."])
    assert check.find("Write a haiku about autumn\nLeaves drift.") is None
    assert check.find("Leaves drift.\nWrite a haiku about winter") == 14


def test_very_short_tasks_are_not_looked_for() -> None:
    assert OverAnswer("Write a haiku.", ["Say hello."]).find("Say hello.") is None
