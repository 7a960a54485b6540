"""Tokens and times of an answer, in llama-server's and OpenAI's words."""

from pascal_engine.schedule.sequence import Finished, Progress, Usage


def timings(usage: Usage) -> dict[str, float]:
    """llama-server's `timings`; milliseconds, tokens per second. Rates of the answer leave out its first token, which
    the prompt's last batch gave."""
    phases = (
        ("prompt", usage.prompt_n, usage.prompt_n, usage.prompt_ms),
        ("predicted", usage.predicted_n, max(usage.predicted_n - 1, 0), usage.predicted_ms),
    )
    figures: dict[str, float] = {"cache_n": usage.cache_n}
    for name, count, n_steps, milliseconds in phases:
        figures[f"{name}_n"] = count
        figures[f"{name}_ms"] = milliseconds
        figures[f"{name}_per_token_ms"] = milliseconds / n_steps if n_steps else 0.0
        figures[f"{name}_per_second"] = 1000 * n_steps / milliseconds if milliseconds > 0 else 0.0
    return figures


def progress(event: Progress) -> dict[str, float]:
    """llama-server's `prompt_progress`."""
    return {
        "total": event.total,
        "cache": event.cache,
        "processed": event.processed,
        "time_ms": int(event.time_ms),
    }


def openai_usage(usage: Usage) -> dict[str, object]:
    """OpenAI's `usage`."""
    return {
        "completion_tokens": usage.predicted_n,
        "prompt_tokens": usage.prompt_total,
        "total_tokens": usage.prompt_total + usage.predicted_n,
        "prompt_tokens_details": {"cached_tokens": usage.cache_n},
    }


def finish_reason(finished: Finished) -> str:
    """OpenAI's `finish_reason`."""
    return "length" if finished.reason == "limit" else "stop"
