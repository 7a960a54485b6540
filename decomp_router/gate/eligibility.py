"""What may never fan out, judged from the request alone, before any network or model runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from decomp_router.gate.conversation import Conversation, NotAConversation, is_text

MAX_PROMPT_BYTES = 8_000
"""About 2,000 tokens: what is longer is a document rather than a list of tasks."""
MIN_TOKENS = 64
"""An answer capped below this gains nothing from running in parts."""

_Body = Mapping[str, Any]

_UNMERGEABLE = {
    "tools": "the request offers tools",
    "functions": "the request offers functions",
    "web_search_options": "the request offers web search",
    "grammar": "the answer must follow a grammar",
    "json_schema": "the answer must follow a JSON schema",
    "structured_outputs": "the answer must follow a structure",
    "guided_json": "the answer must follow a JSON schema",
    "guided_regex": "the answer must follow a regular expression",
    "guided_choice": "the answer must be one of a list",
    "guided_grammar": "the answer must follow a grammar",
    "logprobs": "the request asks for log probabilities",
    "top_logprobs": "the request asks for log probabilities",
    "n_probs": "the request asks for log probabilities",
    "audio": "the answer is audio",
    "continue_final_message": "the last message is to be continued",
    "timings_per_token": "the request asks for timings of each token",
    "return_progress": "the request asks for the progress of the prompt",
    "return_tokens": "the request asks for token ids",
}
"""Fields that, when set, make an answer which cannot be put together from parts."""


def obstacle(body: _Body) -> str | None:
    """Why a chat request may not fan out, or None if it may."""
    return next((reason for check in _CHECKS if (reason := check(body))), None)


def token_limit(body: _Body) -> int | None:
    """How many tokens the answer may have; None for no limit."""
    given = (body.get(name) for name in ("max_completion_tokens", "max_tokens", "n_predict"))
    return next((value for value in given if isinstance(value, int) and value >= 0), None)


def _fields(body: _Body) -> str | None:
    return next((reason for name, reason in _UNMERGEABLE.items() if body.get(name)), None)


def _format(body: _Body) -> str | None:
    wanted = body.get("response_format")
    plain = wanted is None or (isinstance(wanted, Mapping) and wanted.get("type") == "text")
    return None if plain else "the answer must follow a response format"


def _choices(body: _Body) -> str | None:
    single = all(body.get(name) in (None, 1) for name in ("n", "best_of"))
    return None if single else "the request asks for several choices"


def _modalities(body: _Body) -> str | None:
    return None if body.get("modalities") in (None, ["text"]) else "the answer is more than text"


def _pinned(body: _Body) -> str | None:
    return None if body.get("id_slot") in (None, -1) else "the request is pinned to one slot"


def _prefill(body: _Body) -> str | None:
    return "the answer has been begun" if body.get("add_generation_prompt") is False else None


def _types(body: _Body) -> str | None:
    """Wrong types are for the upstream to answer."""
    stop, options = body.get("stop"), body.get("stream_options")
    strings = isinstance(stop, str | None) or (isinstance(stop, list) and all(isinstance(s, str) for s in stop))
    limits = all(type(body.get(name)) in (int, type(None)) for name in ("max_tokens", "max_completion_tokens"))
    fine = isinstance(body.get("stream"), bool | None) and isinstance(options, dict | None) and strings and limits
    return None if fine else "a field has an unexpected type"


def _messages(body: _Body) -> str | None:
    messages = body.get("messages")
    try:
        conversation = Conversation.of(messages)
    except NotAConversation as error:
        return str(error)
    assert isinstance(messages, list)
    if messages[-1]["role"] != "user":
        return "the last message is not the user's"
    if any(isinstance(m.get("content"), list) and not all(map(is_text, m["content"])) for m in messages):
        return "the conversation holds more than text"
    if any(m["role"] in ("tool", "function") or m.get("tool_calls") for m in messages):
        return "the conversation holds tool calls"
    if not conversation.prompt.strip():
        return "the last message is empty"
    try:
        size = len(conversation.prompt.encode())
    except UnicodeEncodeError:
        return "the last message is not valid Unicode"
    return "the last message is too long" if size > MAX_PROMPT_BYTES else None


def _length(body: _Body) -> str | None:
    limit = token_limit(body)
    return f"at most {limit} tokens are wanted" if limit is not None and limit < MIN_TOKENS else None


_CHECKS: tuple[Callable[[_Body], str | None], ...] = (
    _types,
    _fields,
    _format,
    _choices,
    _modalities,
    _pinned,
    _prefill,
    _length,
    _messages,
)
