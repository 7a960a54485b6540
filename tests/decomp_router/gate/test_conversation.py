"""What a chat request says."""

from __future__ import annotations

import pytest

from decomp_router.gate.conversation import Conversation, NotAConversation


def test_the_last_user_text_and_what_went_before() -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": None},
        {"role": "user", "content": [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]},
    ]
    found = Conversation.of(messages)
    assert found.prompt == "One.\nTwo."
    assert found.context == (("system", "Be brief."), ("user", "Hi"), ("assistant", ""))


def test_what_comes_after_the_last_user_message_is_not_context() -> None:
    found = Conversation.of([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}])
    assert found == Conversation("Hi")


@pytest.mark.parametrize(
    "messages",
    [
        None,
        [],
        {},
        [None],
        [{"content": "x"}],
        [{"role": "user", "content": 3}],
    ],
)
def test_anything_else_is_named(messages: object) -> None:
    with pytest.raises(NotAConversation, match="messages"):
        Conversation.of(messages)


def test_what_must_not_be_taken_apart_says_why() -> None:
    assert Conversation.of([{"role": "assistant", "content": "x"}]).unreadable == "no message is the user's"
    picture = [{"type": "text", "text": "One. Two."}, {"type": "image_url", "image_url": {"url": "data:"}}]
    assert Conversation.of([{"role": "user", "content": picture}]).unreadable == "a part of the message is not text"
