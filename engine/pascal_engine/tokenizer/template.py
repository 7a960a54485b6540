"""The model's chat template: messages to the prompt it was trained on."""

import copy
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from jinja2 import TemplateError as JinjaError

from pascal_engine.tokenizer.capabilities import Capabilities
from pascal_engine.tokenizer.sandbox import Sandbox

_CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
# A text that no message holds, to find the end of a message by; transformers uses one in the same way.
_MARK = "CONTINUE-HERE-5d0f1c "

_REASONING = ("reasoning_content", "thinking", "reasoning")


class TemplateError(Exception):
    """The template cannot be compiled, or refuses the messages; the text is the template's own complaint."""


class ChatTemplate:
    """A Jinja template from the model file or from whoever runs the engine, kept within bounds since it is foreign
    code. What it makes equals what transformers' `apply_chat_template` makes of the same arguments."""

    def __init__(self, source: str | None, bos_text: str = "", eos_text: str = "") -> None:
        self.source = source or _CHATML
        self._tokens = {"bos_token": bos_text, "eos_token": eos_text}
        self._sandbox = Sandbox()
        try:
            self._template = self._sandbox.from_string(self.source)
        except (JinjaError, RecursionError) as error:
            raise TemplateError(f"the model's chat template is damaged: {error}") from error

    @cached_property
    def capabilities(self) -> Capabilities:
        """What shapes of messages the template can take."""
        return Capabilities.probe(self._try, self.source)

    def render(
        self,
        messages: Sequence[Mapping[str, object]],
        *,
        tools: Sequence[Mapping[str, object]] | None = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
        variables: Mapping[str, object] | None = None,
    ) -> str:
        """The prompt for `messages`; `variables` are handed to the template as they are. With `continue_final_message`
        it ends where the last message's content ends, instead of with the end of a turn."""
        messages = [_with_reasoning(message) for message in messages]
        if continue_final_message:
            messages = _marked(messages)
        names = {
            **self._tokens,
            "documents": None,
            **(variables or {}),
            "messages": messages,
            "tools": tools,
            "add_generation_prompt": add_generation_prompt and not continue_final_message,
        }
        try:
            text = self._sandbox.render(self._template, names)
        except (JinjaError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
            # Templates take the shape of messages for granted; what does not fit fails in any of these ways.
            raise TemplateError(f"the model's chat template refuses these messages: {_one_line(error)}") from error
        except (RecursionError, MemoryError) as error:
            raise TemplateError("the model's chat template asks for too much memory; use another template") from error
        return _up_to_mark(text) if continue_final_message else text

    def _try(self, messages: Sequence[Mapping[str, Any]]) -> str | None:
        try:
            return self.render(messages)
        except TemplateError:
            return None


def _with_reasoning(message: Mapping[str, object]) -> Mapping[str, object]:
    """The message with its thought under each of the names that templates know."""
    thought = next((message[name] for name in _REASONING if message.get(name) is not None), None)
    return message if thought is None else {"thinking": thought, **message, "reasoning_content": thought}


def _marked(messages: Sequence[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """The messages, with a mark behind the last one's text."""
    last: dict[str, Any] = copy.deepcopy(dict(messages[-1]))
    content = last.get("content")
    if isinstance(content, str):
        last["content"] = content + _MARK
        return [*messages[:-1], last]
    part = next((part for part in reversed(content or []) if "text" in part), None)
    if part is None:
        raise TemplateError("the last message has no text to continue; give it some 'content'")
    part["text"] += _MARK
    return [*messages[:-1], last]


def _up_to_mark(text: str) -> str:
    end = text.rfind(_MARK.strip())
    if end < 0:
        raise TemplateError("the model's chat template does not show the last message, so it cannot be continued")
    # A template that trims the message took the mark's space away, and would have taken that of the message itself.
    trimmed = text[end : end + len(_MARK)] != _MARK
    return text[:end].rstrip() if trimmed else text[:end]


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
