"""The model's chat template: messages to the prompt it was trained on."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NoReturn

from jinja2 import TemplateError as JinjaError
from jinja2.sandbox import ImmutableSandboxedEnvironment

_CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


class TemplateError(Exception):
    """The template cannot be compiled, or refuses the messages; the text is the template's own complaint."""


class ChatTemplate:
    """A Jinja template from the model file, run in a sandbox since the file is foreign code."""

    def __init__(self, source: str | None, bos_text: str = "", eos_text: str = "") -> None:
        self.source = source or _CHATML
        self._tokens = {"bos_token": bos_text, "eos_token": eos_text}
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _refuse
        environment.globals["strftime_now"] = _strftime_now
        try:
            self._template = environment.from_string(self.source)
        except JinjaError as error:
            raise TemplateError(f"the model's chat template is damaged: {error}") from error

    def render(
        self,
        messages: Sequence[Mapping[str, object]],
        *,
        add_generation_prompt: bool = True,
        variables: Mapping[str, object] | None = None,
    ) -> str:
        """The prompt for `messages`; `variables` are handed to the template as they are."""
        names = {**self._tokens, **(variables or {}), "messages": messages}
        try:
            return self._template.render(names, add_generation_prompt=add_generation_prompt)
        except (JinjaError, TypeError, ValueError, KeyError, AttributeError, ArithmeticError) as error:
            # Templates take the shape of messages for granted; what does not fit fails in any of these ways.
            raise TemplateError(f"the model's chat template refuses these messages: {error}") from error


def _to_json(value: object, ensure_ascii: bool = False, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)


def _refuse(message: str) -> NoReturn:
    raise JinjaError(message)


def _strftime_now(pattern: str) -> str:
    return datetime.now().strftime(pattern)
