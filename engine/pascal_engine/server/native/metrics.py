"""/metrics: what the scheduler counted, under llama-server's names, in Prometheus' text format.

The text is written here and not by a library: Prometheus' own would rename `n_tokens_max`, which llama-server calls a
counter, and add `_created` series that llama-server does not have.
"""

from dataclasses import replace

from pascal_engine.schedule.counters import Counters
from pascal_engine.schedule.scheduler import Scheduler

CONTENT_TYPE = "text/plain; version=0.0.4"


class Metrics:
    """The two rates hold for the time between one scrape and the next, as with llama-server."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._before = Counters()

    def scrape(self) -> str:
        """All series, each with its help and type."""
        # Looked at first: what is no longer in a slot has been counted.
        processing = sum(slot.sequence is not None for slot in self._scheduler.slots)
        now = replace(self._scheduler.counters)
        before, self._before = self._before, now
        lines = [line for name, help_, value in self._counters(now) for line in _series("counter", name, help_, value)]
        return "\n".join([*lines, *self._gauges(now, before, processing)]) + "\n"

    def _counters(self, now: Counters) -> list[tuple[str, str, float]]:
        return [
            ("prompt_tokens_total", "Prompt tokens computed, those from the cache left out.", now.prompt_tokens),
            ("prompt_tokens_cached_total", "Prompt tokens whose state was reused.", now.cached_tokens),
            ("prompt_seconds_total", "Seconds that requests spent on their prompts.", now.prompt_seconds),
            ("tokens_predicted_total", "Tokens of answers.", now.predicted_tokens),
            ("tokens_predicted_seconds_total", "Seconds that requests spent on answers.", now.predicted_seconds),
            ("n_decode_total", "Batches computed, of prompts and of answers.", now.n_batches),
            ("n_tokens_max", "Tokens of the longest sequence so far, prompt and answer.", now.most_tokens),
            ("spec_decode_num_draft_tokens_total", "Draft tokens: none, there is no speculation.", 0),
            ("spec_decode_num_accepted_tokens_total", "Accepted draft tokens: none.", 0),
            ("spec_decode_num_drafts_total", "Drafts: none.", 0),
        ]

    def _gauges(self, now: Counters, before: Counters, processing: int) -> list[str]:
        prompts = _rate(now.prompt_tokens - before.prompt_tokens, now.prompt_seconds - before.prompt_seconds)
        answers = _rate(now.n_steps - before.n_steps, now.predicted_seconds - before.predicted_seconds)
        gauges = [
            ("prompt_tokens_seconds", "Prompt tokens a second of a request, since the last scrape.", prompts),
            ("predicted_tokens_seconds", "Tokens of an answer a second, since the last scrape.", answers),
            ("requests_processing", "Requests in slots.", processing),
            ("requests_deferred", "Requests that wait for a slot.", self._scheduler.n_waiting),
            ("n_busy_slots_per_decode", "Sequences in a batch, on average.", now.n_busy / max(now.n_batches, 1)),
        ]
        return [line for name, help_, value in gauges for line in _series("gauge", name, help_, value)]


def _series(kind: str, name: str, help_: str, value: float) -> list[str]:
    return [f"# HELP llamacpp:{name} {help_}", f"# TYPE llamacpp:{name} {kind}", f"llamacpp:{name} {value:.15g}"]


def _rate(count: float, seconds: float) -> float:
    return count / seconds if seconds > 0 else 0.0
