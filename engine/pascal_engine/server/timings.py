"""Tokens and times of an answer, in llama-server's and OpenAI's words."""

from pascal_engine.schedule.sequence import Finished, Usage


def timings(usage: Usage) -> dict[str, float]:
    """llama-server's `timings`; milliseconds, tokens per second."""
    phases = (("prompt", usage.prompt_n, usage.prompt_ms), ("predicted", usage.predicted_n, usage.predicted_ms))
    figures: dict[str, float] = {"cache_n": usage.cache_n}
    for name, count, milliseconds in phases:
        figures[f"{name}_n"] = count
        figures[f"{name}_ms"] = milliseconds
        figures[f"{name}_per_token_ms"] = milliseconds / count if count else 0.0
        figures[f"{name}_per_second"] = 1000 * count / milliseconds if milliseconds > 0 else 0.0
    return figures


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
