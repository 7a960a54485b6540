"""The network's own tokenizer: spans, layout, room for what went before."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decomp_router.decompose.decomposer import ArtefactError, load
from decomp_router.decompose.tokens import (
    CONTEXT_TOKENS,
    EARLIER_MESSAGE,
    LINE_START,
    PARAGRAPH_START,
    WINDOW,
    PromptTokenizer,
    context_of,
)

ARTEFACT = Path(str(files("decomp_router.decompose") / "artefact"))
TOKENIZER = PromptTokenizer(ARTEFACT / "tokenizer.json")


@given(st.text(max_size=200))
def test_every_token_stands_for_visible_text_in_order(prompt: str) -> None:
    encoding = TOKENIZER.encode(prompt)
    assert len(encoding.ids) == len(encoding.spans) + 2
    previous = 0
    for start, end in encoding.spans:
        assert start >= previous or (start, end) == tuple(encoding.spans[0]) or start < end
        assert prompt[start:end].strip()
        previous = start


def test_line_breaks_reach_the_network_as_layout() -> None:
    encoding = TOKENIZER.encode("one\ntwo\n\nthree")
    starts = {int(start): int(layout) for (start, _), layout in zip(encoding.spans, encoding.layout[1:], strict=False)}
    assert (starts[0], starts[4], starts[9]) == (0, LINE_START, PARAGRAPH_START)


def test_a_literal_special_token_stays_text() -> None:
    ids = TOKENIZER.encode("<s> </s> <pad>").ids
    assert not set(ids[1:-1]) & {0, 1, 2}


def test_what_went_before_gives_way_to_a_long_prompt() -> None:
    history = context_of([("user", "tell me more about it " * 200)])
    short, long = TOKENIZER.encode("why?", history), TOKENIZER.encode("word " * 470, history)
    assert (short.layout == EARLIER_MESSAGE).sum() == CONTEXT_TOKENS + 2
    assert len(long.ids) == WINDOW


@pytest.mark.parametrize("name", ["network.onnx", "tokenizer.json", "thresholds.json"])
@pytest.mark.parametrize("damage", ["missing", "broken"])
def test_a_damaged_artefact_is_one_sentence(name: str, damage: str, tmp_path: Path) -> None:
    for path in ARTEFACT.iterdir():
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / name).unlink()
    if damage == "broken":
        (tmp_path / name).write_text("nothing of use")
    with pytest.raises(ArtefactError, match="install the package anew"):
        load(tmp_path)
