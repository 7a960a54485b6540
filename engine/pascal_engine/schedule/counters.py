"""What the scheduler has done since it was made."""

from dataclasses import dataclass

from pascal_engine.schedule.sequence import Usage


@dataclass
class Counters:
    """Sums over all requests that left their slots, finished or cancelled, and over all batches.

    Times are those of the requests, in seconds: what two requests spend side by side counts twice. `n_steps` are the
    tokens of answers without the first of each, which the prompt's last batch gives. `n_busy` sums up the sequences of
    the batches, and `most_tokens` is the longest sequence, prompt and answer.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    prompt_seconds: float = 0.0
    predicted_tokens: int = 0
    n_steps: int = 0
    predicted_seconds: float = 0.0
    n_batches: int = 0
    n_busy: int = 0
    most_tokens: int = 0

    def add_batch(self, n_sequences: int) -> None:
        """A batch of `n_sequences` was computed."""
        self.n_batches += 1
        self.n_busy += n_sequences

    def add_usage(self, usage: Usage) -> None:
        """A request left its slot."""
        self.prompt_tokens += usage.prompt_n
        self.cached_tokens += usage.cache_n
        self.prompt_seconds += usage.prompt_ms / 1000
        self.predicted_tokens += usage.predicted_n
        self.n_steps += max(usage.predicted_n - 1, 0)
        self.predicted_seconds += usage.predicted_ms / 1000
        self.most_tokens = max(self.most_tokens, usage.prompt_total + usage.predicted_n)
