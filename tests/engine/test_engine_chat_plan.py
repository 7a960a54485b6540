"""Where state is kept in the prompt of a chat, and where an answer begins."""

import pytest

from pascal_engine.server.chat.dialect import Dialect, Thinking
from pascal_engine.server.chat.plan import message_ends

END = 9
THINKS, PLAIN = Dialect(None, thinks=True), Dialect(None, thinks=False)


@pytest.mark.parametrize(
    ("tokens", "ends"),
    [
        ([], ()),
        ([1, 2], ()),
        ([1, END, 2], (2,)),
        ([1, END, 2, END, 3], (2, 4)),
        ([1, END, 2, END, 3, END, 4, END, 5], (2, 6, 8)),
    ],
)
def test_state_is_kept_after_the_first_message_and_the_last_two(tokens: list[int], ends: tuple[int, ...]) -> None:
    assert message_ends(tokens, {END}) == ends


@pytest.mark.parametrize(
    ("prompt", "thinking"),
    [
        ("<|im_start|>assistant\n", "may"),
        ("<|im_start|>assistant\n<think>\n", "open"),
        ("<|im_start|>assistant\n<think>\n\n</think>\n\n", "no"),
    ],
)
def test_the_prompt_tells_where_an_answer_begins(prompt: str, thinking: Thinking) -> None:
    assert THINKS.thinking_after(prompt) == thinking
    assert PLAIN.thinking_after(prompt) == "no"


@pytest.mark.parametrize(
    ("message", "thinking"),
    [("Well,", "no"), ("<think>\nFirst", "open"), ("<think>\nFirst\n</think>\n\nSo", "no")],
)
def test_a_message_to_go_on_with_may_end_inside_a_thought(message: str, thinking: Thinking) -> None:
    assert THINKS.thinking_within(message) == thinking
    assert PLAIN.thinking_within(message) == "no"
