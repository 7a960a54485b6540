"""Stop strings, found across the borders of tokens and never shown."""

from collections.abc import Sequence


class StopMatcher:
    """Passes text through, keeping back what may yet become a stop string."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = [stop for stop in stops if stop]
        self._held = ""

    def add(self, text: str) -> tuple[str, str | None]:
        """The text that is safe to show now, and the stop string that ended it, if one did: the first to be complete,
        of those that end together the longest."""
        self._held += text
        found = [(start + len(stop), start, stop) for stop in self._stops if (start := self._held.find(stop)) >= 0]
        if found:
            _, start, stop = min(found)
            shown, self._held = self._held[:start], ""
            return shown, stop
        keep = self._unsure()
        shown, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        return shown, None

    def finish(self) -> str:
        """The text kept back, once no more can follow."""
        held, self._held = self._held, ""
        return held

    def _unsure(self) -> int:
        """Length of the longest end of the held text that begins a stop string."""
        longest = max((len(stop) for stop in self._stops), default=1) - 1
        lengths = range(min(longest, len(self._held)), 0, -1)
        return next((n for n in lengths if any(stop.startswith(self._held[-n:]) for stop in self._stops)), 0)
