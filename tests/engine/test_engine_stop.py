"""Stop strings and UTF-8 in the text of an answer, wherever the borders of its tokens are."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pascal_engine.memory.checkpoints import CheckpointPlan
from pascal_engine.sampling.sampler import Choice
from pascal_engine.schedule.sequence import Finished, GenerationRequest, Sequence
from pascal_engine.schedule.stop import StopMatcher
from tests.engine.harness import Inbox

PARTS = (b"a", b"b", b"c", "ä".encode(), "漢".encode(), "😀".encode(), b"\xff", b"\x80", b"\xe6", b"\xf0\x9f", b"\xc3")
STOPS = st.lists(st.text("abcä漢😀\ufffd", min_size=1, max_size=4), max_size=3)


@dataclass
class Pieces:
    """A tokenizer whose tokens are the pieces of one text, and one more that ends the answer; it samples them too."""

    pieces: list[bytes]
    at: int = -1

    @property
    def n_vocab(self) -> int:
        return len(self.pieces) + 1

    @property
    def end_of_generation(self) -> frozenset[int]:
        return frozenset({len(self.pieces)})

    def piece(self, token: int) -> bytes:
        return self.pieces[token] if token < len(self.pieces) else b""

    def sample(self, logits: object) -> Choice:
        self.at += 1
        return Choice(self.at, None)


def answer(pieces: list[bytes], stops: tuple[str, ...], limit: int | None = None) -> Inbox:
    """What a client gets of an answer whose tokens are `pieces`."""
    inbox, tokenizer = Inbox(), Pieces(pieces)
    request = GenerationRequest((0,), limit, stop=stops)
    plan = CheckpointPlan(1, (), every_block=False)
    sequence = Sequence(request, 0, 4096, tokenizer, inbox.events.append, plan)  # type: ignore[arg-type]
    sequence._sampler = tokenizer  # type: ignore[assignment]
    while not sequence.finished:
        sequence.take(np.zeros(0, np.float32), 0.0)
    return inbox


def expected(text: str, stops: tuple[str, ...]) -> tuple[str, str]:
    """The text shown, and the stop string: the first to be complete; of those, the longest."""
    for end in range(1, len(text) + 1):
        ended = [stop for stop in stops if text[:end].endswith(stop)]
        if ended:
            stop = max(ended, key=len)
            return text[: end - len(stop)], stop
    return text, ""


def assert_exact(pieces: list[bytes], stops: tuple[str, ...]) -> None:
    whole = b"".join(pieces).decode("utf-8", "replace")
    shown, word = expected(whole, stops)
    inbox = answer(pieces, stops)
    assert inbox.text == shown
    assert isinstance(inbox.end, Finished)
    assert (inbox.end.stopping_word, inbox.end.reason) == (word, "word" if word else "eos")


def splits(text: bytes) -> Iterator[list[bytes]]:
    """All 2 ** (bytes - 1) of them."""
    for count in range(len(text)):
        for cuts in combinations(range(1, len(text)), count):
            borders = [0, *cuts, len(text)]
            yield [text[start:end] for start, end in pairwise(borders)]


@pytest.mark.parametrize(
    ("text", "stops"),
    [
        ("ä漢😀a".encode(), ()),
        ("aäbcab".encode(), ("bca", "äb", "ab")),
        ("a😀b漢".encode(), ("😀b", "漢漢")),
        (b"a\xe6\xbc\xc3\xa4\xffb", ("\ufffdb",)),
        (b"\xf0\x9f\x98a\xf0\x9f", ("a\ufffd",)),
        (b"ababac", ("abac", "ba")),
        (b"aaaab", ("aab",)),
    ],
)
def test_every_split_of_a_text_gives_the_same_answer(text: bytes, stops: tuple[str, ...]) -> None:
    for pieces in splits(text):
        assert_exact(pieces, stops)


@settings(deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=12), st.data(), STOPS)
def test_any_bytes_in_any_pieces_with_any_stops(parts: list[bytes], data: st.DataObject, stops: list[str]) -> None:
    text = b"".join(parts)
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=12))  # two alike give a token without text
    assert_exact([text[start:end] for start, end in pairwise([0, *sorted(cuts), len(text)])], tuple(stops))


@settings(deadline=None)
@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=8), STOPS)
@example([b"a", "ä".encode()[:1]], ["a\ufffd"])
def test_a_limit_cuts_an_answer_as_its_end_would(pieces: list[bytes], stops: list[str]) -> None:
    """Nothing is kept back, an unfinished character becomes U+FFFD, and no stop string is shown."""
    for limit in range(1, len(pieces) + 1):
        inbox = answer(pieces, tuple(stops), limit)
        text = b"".join(pieces[:limit]).decode("utf-8", "replace")
        assert inbox.text == expected(text, tuple(stops))[0]


@settings(deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=10), STOPS)
def test_what_was_shown_is_never_taken_back(pieces: list[bytes], stops: list[str]) -> None:
    whole = answer(pieces, tuple(stops)).text
    shown = ""
    for event in answer(pieces, tuple(stops)).events[:-1]:
        shown += event.text  # type: ignore[union-attr]
        assert whole.startswith(shown)
        assert not any(stop in shown for stop in stops)


def test_text_that_cannot_become_a_stop_string_is_not_kept_back() -> None:
    matcher = StopMatcher(["END"])
    assert [matcher.add(part) for part in ("a", "E", "N", "x", "END")] == [
        ("a", None),
        ("", None),
        ("", None),
        ("ENx", None),
        ("", "END"),
    ]
