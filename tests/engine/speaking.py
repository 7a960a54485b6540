"""A tiny engine that says what a test wants it to say."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from pascal_engine.backend.batch import Batch
from pascal_engine.engine import Engine
from pascal_engine.memory import StatePools
from pascal_engine.tokenizer import ChatTemplate

# JSON calls between tags, thoughts, results of tools: the shape of Qwen's and Hermes' templates.
TEMPLATE = """\
{%- if tools %}{{ '<|im_start|>system\\n# Tools\\n' }}{% for tool in tools %}{{ tool | tojson }}{% endfor %}
{{- '\\nCall as <tool_call>{\\"name\\": ..., \\"arguments\\": ...}</tool_call>.<|im_end|>\\n' }}{% endif %}
{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' }}
{%- if message.reasoning_content %}{{ '<think>\\n' + message.reasoning_content + '\\n</think>\\n' }}{% endif %}
{{- message.content or '' }}
{%- for call in message.tool_calls or [] %}
{{- '<tool_call>{\\"name\\": \\"' + call.function.name + '\\", \\"arguments\\": ' }}
{{- (call.function.arguments | tojson) + '}</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}
{%- if enable_thinking is false %}{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}{% endif %}"""

Say = Callable[[str], None]


def chatty(engine: Engine) -> Engine:
    """`engine` with a template that knows tools and thoughts."""
    return replace(engine, template=ChatTemplate(TEMPLATE, engine.tokenizer.bos_text, engine.tokenizer.eos_text))


def make_say(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Say:
    """say(text): each answer from now on is `text`, in as few tokens as the tokenizer makes of it."""
    forward = type(engine.model).forward
    script: list[int] = []
    said: dict[int, int] = {}

    def scripted(self: object, batch: Batch, pools: StatePools) -> npt.NDArray[np.float32]:
        logits = np.full_like(forward(self, batch, pools), -50)
        for index, row in enumerate(batch.rows.tolist()):
            said[row] = 0 if batch.tokens.shape[1] > 1 else said[row] + 1
            logits[index, script[min(said[row], len(script) - 1)]] = 50
        return logits

    def say(text: str) -> None:
        script[:] = [*engine.tokenizer.encode(text), min(engine.tokenizer.end_of_generation)]

    monkeypatch.setattr(type(engine.model), "forward", scripted)
    return say
