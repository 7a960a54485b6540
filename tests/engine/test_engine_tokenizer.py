"""Text to tokens and back, and chat templates."""

import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pascal_engine.gguf import ModelFile
from pascal_engine.tokenizer import ChatTemplate, Detokenizer, TemplateError, Tokenizer
from pascal_engine.tokenizer.pre import PRE_TOKENIZERS

USER = [{"role": "user", "content": "Hi"}]


@pytest.fixture(scope="module")
def tokenizer(data: Path) -> Tokenizer:
    return Tokenizer.from_file(ModelFile(data / "llama-tiny.gguf"))


@given(text=st.text())
def test_decoding_gives_the_text_back(text: str, tokenizer: Tokenizer) -> None:
    text = text.encode("utf-8", "replace").decode()
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_qwen_normalises_to_nfc(data: Path) -> None:
    qwen = Tokenizer.from_file(ModelFile(data / "qwen35-tiny.gguf"))
    assert qwen.encode("cafe\u0301") == qwen.encode("caf\u00e9")


def test_control_tokens_are_read_only_where_asked_for(tokenizer: Tokenizer) -> None:
    text = "<|im_start|>user"
    parsed, plain = tokenizer.encode(text, parse_special=True), tokenizer.encode(text)
    assert len(parsed) < len(plain)
    assert tokenizer.decode(parsed) == tokenizer.decode(plain) == text
    assert tokenizer.piece(parsed[0]) == b""
    assert len(tokenizer.encode("<think>")) == 1


def test_a_long_text_leaves_the_processor_to_other_threads(tokenizer: Tokenizer) -> None:
    spans: list[float] = []

    def encode() -> None:
        begun = time.perf_counter()
        tokenizer.encode("ab cd " * 100_000)
        spans.append(time.perf_counter() - begun)

    thread = threading.Thread(target=encode)
    last, longest = time.perf_counter(), 0.0
    thread.start()
    while not spans:
        now = time.perf_counter()
        last, longest = now, max(longest, now - last)
    thread.join()
    assert longest < spans[0] / 2


def test_generation_ends_at_the_end_of_turn_and_of_text(tokenizer: Tokenizer) -> None:
    assert {tokenizer.decode([token]) for token in tokenizer.end_of_generation} == {"<|im_end|>", "<|endoftext|>"}


@given(text=st.text())
def test_detokenizing_token_by_token_never_breaks_a_character(text: str, tokenizer: Tokenizer) -> None:
    text = text.encode("utf-8", "replace").decode()
    detokenizer = Detokenizer(tokenizer)
    pieces = [detokenizer.add(token) for token in tokenizer.encode(text)]
    assert "".join(pieces) + detokenizer.finish() == text


def test_bytes_that_are_no_text_become_replacement_characters(tokenizer: Tokenizer) -> None:
    emoji = tokenizer.encode("🎉")
    assert len(emoji) == 4
    detokenizer = Detokenizer(tokenizer)
    assert [detokenizer.add(token) for token in emoji[:3]] == ["", "", ""]
    assert detokenizer.add(tokenizer.encode("a")[0]) == "\ufffda"
    assert detokenizer.add(emoji[0]) == ""
    assert detokenizer.finish() == "\ufffd"
    assert tokenizer.decode(emoji[1:]) == "\ufffd\ufffd\ufffd"


@pytest.mark.parametrize(
    ("pre", "words"),
    [
        ("qwen2", ["I", "'ll", "Ġpay", "Ġ", "1", "2", "3", "ĠâĤ¬!!Ċ", "ĠĠ", "Ġx"]),
        ("qwen35", ["I", "'ll", "Ġpay", "Ġ", "1", "2", "3", "ĠâĤ¬!!Ċ", "ĠĠ", "Ġx"]),
        ("smollm", ["I", "'ll", "Ġpay", "Ġ", "1", "2", "3", "ĠâĤ¬!!", "ĊĠĠ", "Ġx"]),
        ("llama-bpe", ["I", "'ll", "Ġpay", "Ġ", "123", "ĠâĤ¬!!Ċ", "ĠĠ", "Ġx"]),
        ("gpt-2", ["I", "'ll", "Ġpay", "Ġ123", "ĠâĤ¬!!", "ĊĠĠ", "Ġx"]),
    ],
)
def test_text_is_cut_as_the_family_does(pre: str, words: list[str]) -> None:
    cut = PRE_TOKENIZERS[pre].build().pre_tokenize_str("I'll pay 123 €!!\n   x")
    assert [word for word, _ in cut] == words


def test_templates_get_what_they_expect() -> None:
    source = (
        "{{ bos_token }}{% for m in messages %}{{ m | tojson }}{% endfor %}{{ strftime_now('%Y') | length }}{{ x }}"
    )
    text = ChatTemplate(source, bos_text="<s>").render([{"role": "user", "content": "Grüße"}], variables={"x": "!"})
    assert text == '<s>{"role": "user", "content": "Grüße"}4!'


def test_the_generation_prompt_is_added() -> None:
    assert ChatTemplate(None).render(USER).endswith("<|im_start|>assistant\n")
    assert not ChatTemplate(None).render(USER, add_generation_prompt=False).endswith("assistant\n")


@pytest.mark.parametrize(
    "source",
    [
        "{{ raise_exception('users only') }}",
        "{{ ''.__class__.__mro__ }}",
        "{{ messages.append(1) }}",
        "{{ messages[0].content + 1 }}",
        "{{ 1 // 0 }}",
        "{{ unknown.name }}",
    ],
)
def test_a_template_that_refuses_or_trespasses_is_an_error(source: str) -> None:
    with pytest.raises(TemplateError, match="refuses these messages"):
        ChatTemplate(source).render(USER)


def test_a_damaged_template_is_an_error() -> None:
    with pytest.raises(TemplateError, match="damaged"):
        ChatTemplate("{% if %}")
