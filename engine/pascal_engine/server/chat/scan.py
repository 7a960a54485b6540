"""Looking for marks in text that comes piece by piece."""

from collections.abc import Sequence


def unsure_end(text: str, marks: Sequence[str]) -> int:
    """Length of the longest end of `text` that begins one of `marks`, but is not all of it."""
    longest = min(max(map(len, marks)) - 1, len(text))
    return next((n for n in range(longest, 0, -1) if any(mark.startswith(text[-n:]) for mark in marks)), 0)


class TextScanner:
    """Passes text through up to the first mark. With `hold_space` white space waits for what follows it."""

    def __init__(self, marks: tuple[str, ...], *, hold_space: bool = False) -> None:
        self._marks, self._hold_space = marks, hold_space
        self._held = ""

    def add(self, text: str) -> tuple[str, str | None]:
        """The text that is certain to stand before any mark, and the mark that was reached, if one was."""
        self._held += text
        found = [(self._held.find(mark), mark) for mark in self._marks if mark in self._held]
        if found:
            start, mark = min(found)
            shown, self._held = self._held[:start], self._held[start + len(mark) :]
            return shown, mark
        end = len(self._held) - unsure_end(self._held, self._marks)
        if self._hold_space:
            end = len(self._held[:end].rstrip())
        shown, self._held = self._held[:end], self._held[end:]
        return shown, None

    def rest(self) -> str:
        """The text kept back, or that behind the mark; it is given once."""
        held, self._held = self._held, ""
        return held
