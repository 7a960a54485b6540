"""The tree of checkpoints: what it finds, shares, counts and lets go."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pascal_engine.memory.checkpoints import Arrays, CheckpointPlan, Snapshot
from pascal_engine.memory.prefix_cache import PrefixCache, Tokens
from tests.engine.scripted import assert_sound

PAGE, STATE = 256, 400


class State:
    """State that tells which tokens it is of; counts the pages that are asked for."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.copied = 0

    def pages(self, first: int, stop: int) -> list[Arrays]:
        self.copied += stop - first
        return [(self._page(index),) for index in range(first, stop)]

    def recurrent(self) -> Arrays:
        state = np.zeros(STATE // 4, np.int32)
        state[:2] = len(self.tokens), int(self.tokens @ np.arange(1, len(self.tokens) + 1)) % 65521
        return (state,)

    def _page(self, index: int) -> Tokens:
        page = np.zeros(64, np.int32)
        tokens = self.tokens[64 * index : 64 * (index + 1)]
        page[: len(tokens)] = tokens
        return page


def run_of(*parts: tuple[int, int]) -> Tokens:
    """Tokens made of (start, length) runs."""
    return np.concatenate([np.arange(start, start + length, dtype=np.int32) for start, length in parts])


def put(cache: PrefixCache, tokens: Tokens) -> int:
    """Pages that had to be copied."""
    state = State(tokens)
    assert cache.put(tokens, state)
    return state.copied


def check(snapshot: Snapshot, tokens: Tokens) -> None:
    """The snapshot is that of the beginning of `tokens`, whole."""
    expected = State(tokens[: snapshot.n_tokens])
    n_pages = -(-snapshot.n_tokens // 64)
    assert len(snapshot.kept_pages) == n_pages
    for (page,), (wanted,) in zip(snapshot.pages(0, n_pages), expected.pages(0, n_pages), strict=True):
        assert np.array_equal(page, wanted)
    assert np.array_equal(snapshot.recurrent()[0], expected.recurrent()[0])


def test_the_longest_beginning_is_found() -> None:
    cache = PrefixCache(PAGE, STATE, 1 << 20)
    tokens = run_of((0, 200))
    for length in (5, 64, 70, 100, 128):
        put(cache, tokens[:length])
    for limit, expected in ((200, 128), (128, 128), (127, 100), (99, 70), (69, 64), (63, 5), (5, 5)):
        found = cache.longest(tokens[:limit])
        assert found is not None
        assert found.n_tokens == expected
        check(found, tokens)
    assert cache.longest(tokens[:4]) is None
    assert cache.longest(run_of((0, 4), (9, 100))) is None


def test_entries_share_their_pages() -> None:
    cache = PrefixCache(PAGE, STATE, 1 << 20)
    assert put(cache, run_of((0, 640), (1000, 30))) == 11
    assert put(cache, run_of((0, 640), (2000, 30))) == 1
    assert put(cache, run_of((0, 640))) == 0
    assert put(cache, run_of((0, 640))) == 0
    assert len(cache) == 3


def test_how_far_others_went_the_same_way() -> None:
    cache = PrefixCache(PAGE, STATE, 1 << 20)
    assert cache.shared(run_of((0, 10))) == 0
    put(cache, run_of((0, 100)))
    put(cache, run_of((0, 64), (500, 100)))
    assert cache.shared(run_of((0, 300))) == 100
    assert cache.shared(run_of((0, 90), (7, 10))) == 90
    assert cache.shared(run_of((0, 64), (500, 50), (7, 90))) == 114
    assert cache.shared(run_of((0, 30))) == 30
    assert cache.has_near(run_of((0, 110)), 11)
    assert not cache.has_near(run_of((0, 110)), 10)


def test_the_least_recently_used_goes_first() -> None:
    one = PAGE + STATE + 1024
    cache = PrefixCache(PAGE, STATE, 3 * one)
    first, second, third, fourth = (run_of((start, 10)) for start in (0, 100, 200, 300))
    for tokens in (first, second, third):
        put(cache, tokens)
    assert cache.longest(first) is not None
    put(cache, second)
    put(cache, fourth)
    assert [cache.longest(tokens) is not None for tokens in (first, second, third, fourth)] == [True, True, False, True]


def test_what_is_larger_than_the_budget_displaces_nothing() -> None:
    cache = PrefixCache(PAGE, STATE, 3 * (PAGE + STATE + 1024))
    put(cache, run_of((0, 10)))
    assert not cache.put(run_of((500, 1000)), State(run_of((500, 1000))))
    assert len(cache) == 1


def test_forgetting_stops_where_another_entry_begins() -> None:
    cache = PrefixCache(PAGE, STATE, 1 << 20)
    mine, others = run_of((0, 300)), run_of((0, 130), (900, 50))
    for length in (64, 130, 192, 300):
        put(cache, mine[:length])
    put(cache, others)
    cache.forget(mine)
    assert_sound(cache)
    assert [found.n_tokens for tokens in (mine, others) if (found := cache.longest(tokens))] == [130, 180]
    cache.forget(others)
    assert len(cache) == cache.used_bytes == 0


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    budget=st.integers(0, 20).map(lambda n: n * 1200),
    moves=st.lists(
        st.tuples(
            st.sampled_from(("put", "longest", "forget")),
            st.lists(st.tuples(st.integers(0, 2), st.sampled_from((1, 30, 64, 65, 128))), min_size=1, max_size=3),
        ),
        max_size=40,
    ),
)
def test_any_moves(budget: int, moves: list[tuple[str, list[tuple[int, int]]]]) -> None:
    cache = PrefixCache(PAGE, STATE, budget)
    for move, parts in moves:
        tokens = run_of(*parts)
        if move == "put":
            kept = cache.put(tokens, State(tokens))
            found = cache.longest(tokens)
            assert not kept or (found is not None and found.n_tokens == len(tokens))
        elif move == "forget":
            cache.forget(tokens)
        elif (found := cache.longest(tokens)) is not None:
            check(found, tokens)
        assert_sound(cache)


@pytest.mark.parametrize(("every_block", "expected"), [(False, [64, 100, 128, 256, 320]), (True, [64, 100, 128, 192])])
def test_where_checkpoints_are_kept(every_block: bool, expected: list[int]) -> None:
    plan = CheckpointPlan(384, (100, 0, 384, 999), every_block)
    ends, at = [], 0
    while at < 384:
        at = plan.chunk_end(at)
        ends.append(at)
    assert ends == [64, 100, 128, 192, 256, 320, 384]
    kept = [end for end in ends if plan.keeps(end)]
    assert kept == ([*expected, 256, 320, 384] if every_block else [*expected, 384])
