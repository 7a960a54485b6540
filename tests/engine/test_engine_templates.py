"""Chat templates: what transformers makes of them, what shapes of messages they take, and bounds on hostile ones."""

import datetime
import json
from typing import Any

import pytest

from pascal_engine.server.chat.detect import dialect_of
from pascal_engine.server.chat.dialect import Dialect
from pascal_engine.tokenizer import ChatTemplate, TemplateError, sandbox
from tests.engine.harness import DATA
from tests.engine.template_cases import CASES

RENDERS: dict[str, dict[str, str | None]] = json.loads((DATA / "template_renders.json").read_text())
USER = [{"role": "user", "content": "Hi"}]


class FixedDate(datetime.datetime):
    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> "FixedDate":
        return cls(2026, 1, 2, 3, 4, 5, tzinfo=tz)


def template(name: str) -> ChatTemplate:
    return ChatTemplate((DATA / "templates" / f"{name}.jinja").read_text(), "<s>", "</s>")


def render(chat_template: ChatTemplate, case: dict[str, Any]) -> str | None:
    names = ("tools", "add_generation_prompt", "continue_final_message")
    options = {name: case[name] for name in names if name in case}
    variables = {name: value for name, value in case.items() if name not in (*names, "messages")}
    try:
        return chat_template.render(case["messages"], variables=variables, **options)
    except TemplateError:
        return None


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", RENDERS)
def test_a_render_equals_that_of_transformers(name: str, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "datetime", FixedDate)
    assert render(template(name), CASES[case]) == RENDERS[name][case]


def test_the_fixtures_are_of_all_cases_and_templates() -> None:
    assert set(RENDERS) == {path.stem for path in (DATA / "templates").glob("*.jinja")}
    assert all(set(renders) == set(CASES) for renders in RENDERS.values())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("qwen-json", Dialect("hermes", thinks=True)),
        ("qwen-xml", Dialect("xml", thinks=True)),
        ("llama", Dialect(None, thinks=False)),
        ("mistral", Dialect(None, thinks=False)),
        ("gemma", Dialect(None, thinks=False)),
    ],
)
def test_the_dialect_is_what_the_template_writes(name: str, expected: Dialect) -> None:
    assert dialect_of(template(name)) == expected


def test_capabilities_are_found_by_trying() -> None:
    found = {name: template(name).capabilities for name in RENDERS}
    assert {name for name, can in found.items() if can.content_as_parts} == {"qwen-xml", "gemma"}
    assert {name for name, can in found.items() if can.arguments_as_text} == {"qwen-json"}
    assert all(can.content_as_text and not can.needs_null_content for can in found.values())
    parts_only = ChatTemplate("{% for m in messages %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endfor %}")
    assert not parts_only.capabilities.content_as_text
    null = "{% for m in messages %}{% if m.content is none %}{{ m.tool_calls[0].function.name }}{% endif %}{% endfor %}"
    assert ChatTemplate(null).capabilities.needs_null_content


NEVER_ENDING = [
    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "{% for a in range(99999) %}{% for b in range(99999) if false %}{% endfor %}{% endfor %}",
    "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    "{% set ns = namespace(x=[1]) %}{% for a in range(99) %}{% set ns.x = [ns.x] * 2 %}{% endfor %}{{ ns.x | tojson }}",
]
GROWING = [
    "{% for a in range(99999) %}{{ 'aaaaaaaaaaaaaaaaaaaaaaaa' * 1000 }}{% endfor %}",
    "{% set x %}{% for a in range(99999) %}{{ 'aaaaaaaaaaaaaaaaaaaaaaaa' * 1000 }}{% endfor %}{% endset %}{{ x }}",
    "{% set ns = namespace(x='a' * 1000) %}{% for a in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
    "{% set ns = namespace(x='a' * 1000) %}{% for a in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
    "{% set ns = namespace(x=[1]) %}{% for a in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
    "{% set ns = namespace(x=[1]) %}{% for a in range(99) %}{% set ns.x = [ns.x] * 2 %}{% endfor %}{{ ns.x | string }}",
    "{% set ns = namespace(x=2) %}{% for a in range(99) %}{% set ns.x = ns.x * ns.x %}{% endfor %}",
    "{{ 'a' * 10**10 }}",
    "{{ [0] * 10**10 }}",
    "{{ 10**10**10 }}",
    "{{ ['aa' * 1000000] * 1000000 }}",
    "{{ 'a'.ljust(10**10) }}",
    "{{ 'a' | center(10**10) }}",
    "{{ 'a' | indent(10**10, first=true) }}",
    "{{ '%9999999999d' % 1 }}",
    "{{ '%*d' % (10**10, 1) }}",
    "{{ '%9999999999d' | format(1) }}",
    "{{ '{:9999999999}'.format(1) }}",
    "{{ ('\\t' * 1000000).expandtabs(1000000) }}",
    "{{ ('a' * 1000000).replace('a', 'b' * 1000000) }}",
    "{{ ('a' * 1000000) | replace('a', 'b' * 1000000) }}",
    "{{ (['a' * 1000000] * 1000000) | join(',') }}",
    "{{ ''.join(['a' * 1000000] * 1000) }}",
    "{{ 'a'.translate({97: 'b'}) }}",
    "{{ [1] | batch(10**10, 0) | list }}",
    "{{ [1] | tojson(indent=10**10) }}",
    "{{ strftime_now('%9999999999d') }}",
    "{{ range(10**8) | list }}",
    "{{ lipsum(n=10**8) }}",
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
]


@pytest.mark.parametrize("source", NEVER_ENDING)
def test_a_template_that_would_not_end_is_stopped(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "MOST_STEPS", 3000)
    monkeypatch.setattr(sandbox, "MOST_SECONDS", 0.5)
    with pytest.raises(TemplateError, match="does not come to an end"):
        ChatTemplate(source).render(USER)


@pytest.mark.parametrize("source", GROWING)
def test_a_template_that_would_eat_memory_is_stopped(source: str) -> None:
    with pytest.raises(TemplateError, match=r"use another template|Range too big|undefined|no use|no date|is none"):
        ChatTemplate(source).render(USER)


def test_a_long_chat_is_within_the_bounds() -> None:
    chat = [{"role": ("user", "assistant")[n % 2], "content": f"{n} " * 500} for n in range(999)]
    for name in ("qwen-json", "qwen-xml", "gemma"):
        assert len(template(name).render(chat)) > 999 * 1000
