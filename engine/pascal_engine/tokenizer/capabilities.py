"""What shapes of messages a chat template can take, found by trying."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Render = Callable[[Sequence[Mapping[str, Any]]], str | None]
"""The prompt for messages, None where the template refuses them."""

_PROBE = "probe-7f3a"
_ARGUMENTS = '{"probe": "7f3a"}'
_USER = {"role": "user", "content": _PROBE}


@dataclass(frozen=True)
class Capabilities:
    """Content as text, as a list of parts, or both; arguments of calls as JSON text where that is taken over word by
    word, else as objects; a call's content as null where the call is not shown beside an empty text."""

    content_as_text: bool
    content_as_parts: bool
    arguments_as_text: bool
    needs_null_content: bool
    knows_developer: bool

    @classmethod
    def probe(cls, render: Render, source: str) -> "Capabilities":
        parts = render([{"role": "user", "content": [{"type": "text", "text": _PROBE}]}]) or ""
        text = render([_USER]) or ""
        as_text, as_object = _call(render, "", _ARGUMENTS), _call(render, "", {"probe": "7f3a"})
        with_null = _call(render, None, {"probe": "7f3a"}) + _call(render, None, _ARGUMENTS)
        return cls(
            content_as_text=_PROBE in text or _PROBE not in parts,
            content_as_parts=_PROBE in parts and "'type'" not in parts and '"type"' not in parts,
            arguments_as_text=_ARGUMENTS in as_text,
            needs_null_content="probe_name" not in as_text + as_object and "probe_name" in with_null,
            knows_developer="developer" in source,
        )


def _call(render: Render, content: str | None, arguments: object) -> str:
    function = {"name": "probe_name", "arguments": arguments}
    call = {"id": "probe0000", "type": "function", "function": function}
    answer = {"role": "assistant", "content": content, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "probe0000", "name": "probe_name", "content": "done"}
    return render([_USER, answer, result]) or render([_USER, answer]) or ""
