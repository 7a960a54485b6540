"""Stop strings and UTF-8, whatever the borders of tokens."""

from hypothesis import given
from hypothesis import strategies as st

from pascal_engine.schedule.stop import StopMatcher


@given(
    text=st.text("abc", max_size=30), stops=st.lists(st.text("abc", min_size=1, max_size=4), max_size=3), data=st.data()
)
def test_stop_strings_are_found_across_any_borders_and_never_shown(
    text: str, stops: list[str], data: st.DataObject
) -> None:
    matcher, shown, found = StopMatcher(stops), "", None
    rest = text
    while rest and found is None:
        cut = data.draw(st.integers(1, len(rest)))
        part, rest = rest[:cut], rest[cut:]
        new, found = matcher.add(part)
        shown += new
    ends = [text.find(stop) for stop in stops if stop in text]
    if found is None:
        assert not ends
        assert shown + matcher.finish() == text
    else:
        # Fed in pieces, the match that is complete first wins: no text of it has been shown.
        assert text.startswith(shown + found)
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
