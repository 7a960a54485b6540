"""What a model writes, taken apart: the same however the text is cut into pieces."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pascal_engine.server.chat.dialect import Dialect, Thinking
from pascal_engine.server.chat.events import (
    ChatPart,
    ContentText,
    ReasoningText,
    ToolCallArguments,
    ToolCallStart,
)
from pascal_engine.server.chat.parser import OutputParser
from pascal_engine.server.chat.schema import Function

HERMES, XML = Dialect("hermes", thinks=True), Dialect("xml", thinks=True)
WEATHER = Function(
    name="weather",
    parameters={
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer"},
            "where": {"$ref": "#/$defs/place"},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "dry": {"type": "boolean"},
        },
        "$defs": {"place": {"type": "object"}},
    },
)
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Bonn"}}\n</tool_call>'
XML_CALL = "<tool_call>\n<function=weather>\n<parameter=city>\nBonn\n</parameter>\n</function>\n</tool_call>"

BONN = [["weather", '{"city": "Bonn"}']]


@dataclass
class Read:
    """What came out, pieces joined."""

    reasoning: str = ""
    content: str = ""
    calls: list[list[str]] = field(default_factory=list)

    def add(self, part: ChatPart) -> None:
        match part:
            case ReasoningText(text):
                self.reasoning += text
            case ContentText(text):
                self.content += text
            case ToolCallStart(index, call_id, name):
                assert index == len(self.calls)
                assert call_id.startswith("call_")
                self.calls.append([name, ""])
            case ToolCallArguments(index, text):
                assert index == len(self.calls) - 1
                self.calls[index][1] += text

    @property
    def arguments(self) -> list[Any]:
        return [json.loads(arguments) for _, arguments in self.calls]


def read(dialect: Dialect, *pieces: str, thinking: Thinking = "no", tools: bool = True) -> Read:
    parser = OutputParser(dialect, thinking, [WEATHER] if tools else [])
    result = Read()
    for part in [part for piece in pieces for part in parser.add(piece)] + parser.finish():
        assert not hasattr(part, "text") or part.text
        result.add(part)
    assert parser.n_calls == len(result.calls)
    return result


ANSWERS: list[tuple[Dialect, Thinking, str, Read]] = [
    (HERMES, "no", "Hello  \n", Read("", "Hello  \n")),
    (HERMES, "may", "Hello", Read("", "Hello")),
    (HERMES, "may", " <thi", Read("", " <thi")),
    (HERMES, "may", "\n<think>\nHm.\n</think>\n\nYes </think> no", Read("Hm.", "Yes </think> no")),
    (HERMES, "open", "\nHm. \n\nSo.\n</think>\nYes", Read("Hm. \n\nSo.", "Yes")),
    (HERMES, "open", "Never ends </thi", Read("Never ends </thi")),
    (HERMES, "open", "I could <tool_call> it.</think>" + CALL, Read("I could <tool_call> it.", "", BONN)),
    (HERMES, "no", CALL, Read("", "", BONN)),
    (HERMES, "no", f"Let me see.\n\n{CALL}\n", Read("", "Let me see.", BONN)),
    (HERMES, "no", f"{CALL}\n{CALL}", Read("", "", BONN * 2)),
    (HERMES, "no", f"A {CALL} B {CALL}\nC", Read("", "A B C", BONN * 2)),
    (HERMES, "no", '<tool_call>{"arguments":{"a":[1,"}"]},"name":"weather"}</tool_call>',
     Read("", "", [["weather", '{"a": [1, "}"]}']])),
    (HERMES, "no", '<tool_call>{"name": "weather"}</tool_call>', Read("", "", [["weather", "{}"]])),
    (HERMES, "no", '<tool_call>{"name": "weather", "arguments": "{\\"a\\": 1}"}',
     Read("", "", [["weather", '{"a": 1}']])),
    (HERMES, "no", '<tool_call>{"name": "w", "arguments": {"a": "}\\"{"}}', Read("", "", [["w", '{"a": "}\\"{"}']])),
    (HERMES, "no", '<tool_call>{"name": "w", "arguments": {"a": "cut', Read("", "", [["w", '{"a": "cut']])),
    (HERMES, "no", "So: <tool_call>nonsense</tool_call> Well.", Read("", "So: <tool_call>nonsense</tool_call> Well.")),
    (HERMES, "no", "So: <tool_call>[1]", Read("", "So: <tool_call>[1]")),
    (HERMES, "no", '<tool_call>{"name": 5}</tool_call>' + CALL, Read("", '<tool_call>{"name": 5}</tool_call>', BONN)),
    (HERMES, "no", '<tool_call>{"name": "w\\q", "arguments": {}}</tool_call>',
     Read("", '<tool_call>{"name": "w\\q", "arguments": {}}</tool_call>')),
    (HERMES, "no", '<tool_call>{"name": "w\\u00e9", "arguments": {}}</tool_call>', Read("", "", [["wé", "{}"]])),
    (HERMES, "no", "<tool_call>" + "[" * 5000 + "</tool_call>", Read("", "<tool_call>" + "[" * 5000 + "</tool_call>")),
    (HERMES, "no", "1 < 2 <tool", Read("", "1 < 2 <tool")),
    (XML, "no", XML_CALL, Read("", "", BONN)),
    (XML, "no", f"I look.\n{XML_CALL}\n{XML_CALL}\nDone", Read("", "I look.\nDone", BONN * 2)),
    (XML, "no", XML_CALL.removeprefix("<tool_call>\n"), Read("", "", BONN)),
    (XML, "no", "<tool_call>\n<function=weather>\n</function>\n</tool_call>", Read("", "", [["weather", "{}"]])),
    (XML, "no", "<tool_call>weather</tool_call> ok", Read("", "<tool_call>weather</tool_call> ok")),
    (XML, "no", "<tool_call>\n<function=", Read("", "<tool_call>\n<function=")),
    (XML, "no", "<function=weather>\n<parameter=city>\nBo", Read("", "", [["weather", '{"city": "Bo']])),
    (XML, "no", "<function=weather>\n<parameter=city>\nBonn\n</parameter>\nand so on",
     Read("", "", [["weather", '{"city": "Bonn\\n</parameter>\\nand so on']])),
    (XML, "no", "<function=weather>\nnothing", Read("", "nothing", [["weather", "{}"]])),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "thinking", "text", "expected"), ANSWERS)
def test_an_answer_is_taken_apart(dialect: Dialect, thinking: Thinking, text: str, expected: Read) -> None:
    assert read(dialect, text, thinking=thinking) == expected
    assert read(dialect, *text, thinking=thinking) == expected


@given(data=st.data())
def test_it_does_not_matter_how_the_text_comes(data: st.DataObject) -> None:
    dialect, thinking, text, expected = data.draw(st.sampled_from(ANSWERS))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert read(dialect, *pieces, thinking=thinking) == expected


FRAGMENTS = ["<tool_call>", "</tool_call>", "<function=weather>", "</function>", "<parameter=city>", "</parameter>"]
FRAGMENTS += [
    "<think>",
    "</think>",
    '{"name": "weather", "arguments": ',
    '{"city": "x"}',
    "}",
    "\n",
    " ",
    "a",
    "<",
    "é",
]


@settings(max_examples=400)
@given(
    fragments=st.lists(st.sampled_from(FRAGMENTS), max_size=14),
    dialect=st.sampled_from([HERMES, XML]),
    thinking=st.sampled_from(["open", "may", "no"]),
)
def test_any_garbage_is_read_and_read_alike_in_pieces(
    fragments: list[str], dialect: Dialect, thinking: Thinking
) -> None:
    text = "".join(fragments)
    whole = read(dialect, text, thinking=thinking)
    assert read(dialect, *text, thinking=thinking) == whole
    assert read(dialect, *fragments, thinking=thinking) == whole


@given(text=st.text())
def test_without_tools_and_thoughts_text_is_content(text: str) -> None:
    text = CALL + text
    assert read(HERMES, *text, tools=False).content == text


@given(
    values=st.fixed_dictionaries(
        {},
        optional={
            "city": st.text(st.characters(exclude_categories=["Cs"])),
            "days": st.integers(),
            "dry": st.booleans(),
            "where": st.dictionaries(st.text("ab"), st.integers() | st.none()),
        },
    )
)
def test_parameters_in_tags_become_json_of_their_types(values: dict[str, Any]) -> None:
    shown = {key: value if isinstance(value, str) else json.dumps(value) for key, value in values.items()}
    parameters = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in shown.items())
    call = f"<tool_call>\n<function=weather>\n{parameters}</function>\n</tool_call>"
    assert read(XML, *call).arguments == [values]


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("days", "5", 5),
        ("days", "many", "many"),
        ("days", "5.5", "5.5"),
        ("dry", "True", True),
        ("dry", "false", False),
        ("note", "null", None),
        ("note", "None", None),
        ("note", "5", "5"),
        ("note", '"x"', '"x"'),
        ("city", "5", "5"),
        ("other", '{"a": 1}', {"a": 1}),
        ("other", "NaN", "NaN"),
        ("other", "word", "word"),
    ],
)
def test_a_bare_value_is_of_the_type_that_the_schema_allows(key: str, text: str, value: object) -> None:
    call = f"<function=weather>\n<parameter={key}>\n{text}\n</parameter>\n</function>"
    assert read(XML, call).arguments == [{key: value}]


def test_a_value_may_hold_what_looks_like_its_end() -> None:
    text = "<a>\n</parameter>\n<b></function></parameter>"
    call = f"<function=weather>\n<parameter=city>\n{text}\n</parameter>\n</function>\n"
    assert read(XML, *call).arguments == [{"city": text}]


def test_arguments_come_as_they_are_written() -> None:
    parser = OutputParser(HERMES, "no", [WEATHER])
    assert parser.add('<tool_call>\n{"name": "weather", "argu') == []
    (start,) = parser.add('ments": ')[:1] or parser.add("{")[:1]
    assert isinstance(start, ToolCallStart)
    assert [part.text for part in parser.add('"ci') if isinstance(part, ToolCallArguments)] == ['"ci']
    xml = OutputParser(XML, "no", [WEATHER])
    parts = xml.add("<tool_call>\n<function=weather>\n<parameter=city>\nBon")
    assert [type(part) for part in parts] == [ToolCallStart, ToolCallArguments, ToolCallArguments]
    assert [part.text for part in xml.add("n\n</par") if isinstance(part, ToolCallArguments)] == ["n"]
