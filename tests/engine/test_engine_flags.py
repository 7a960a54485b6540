"""Flags by llama-server's names: what they set, what is accepted without effect, what is refused and how."""

from pathlib import Path

import pytest

from pascal_engine.flags import Settings, parse
from pascal_engine.flags.peer import NEUTRAL, REFUSED
from pascal_engine.sampling.params import SamplingParams


def settings(*flags: str, **environment: str) -> Settings:
    return parse(["-m", "model.gguf", *flags], environment, "", "")


def complaint(capsys: pytest.CaptureFixture[str], *flags: str, **environment: str) -> str:
    with pytest.raises(SystemExit) as caught:
        settings(*flags, **environment)
    assert caught.value.code == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("pascal-engine: error: ")
    return line


def test_without_flags_all_is_llama_servers_default() -> None:
    given = settings()
    assert (given.host, given.port) == ("127.0.0.1", 8080)
    assert given.engine.defaults.sampling == SamplingParams()
    assert given.engine.defaults.max_tokens is None
    assert (given.server.slots, given.server.metrics, given.server.props) == (True, False, False)
    assert given.server.api_keys == ()
    assert given.server.pooling is None


def test_flags_set_what_they_name(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("# ours\nfirst\n\n second \n")
    template = tmp_path / "template.jinja"
    template.write_text("{{ messages }}")
    given = settings(
        *("-c", "4096", "-np", "4", "-t", "3", "-ctk", "q8_0", "-ctv", "q4_0", "-a", "small", "-cram", "64"),
        *("--host", "::1", "--port", "99", "--api-key", "a,b", "--api-key-file", str(keys)),
        *("--slot-save-path", str(tmp_path), "--no-slots", "--metrics", "--props", "--embedding", "--pooling", "last"),
        *("-n", "7", "--temp", "0.5", "--top-k", "-1", "-s", "3", "--samplers", "top-k;temp"),
        *("--chat-template-file", str(template), "--chat-template-kwargs", '{"a": 1}', "--reasoning", "off"),
        *("--reasoning-format", "none"),
    )
    engine, server, defaults = given.engine, given.server, given.engine.defaults
    assert (engine.ctx_size, engine.parallel, engine.threads, engine.alias) == (4096, 4, 3, "small")
    assert (engine.key_type, engine.value_type, engine.cache_bytes) == ("q8_0", "q4_0", 64 << 20)
    assert (given.host, given.port) == ("::1", 99)
    assert server.api_keys == ("a", "b", "first", "second")
    assert (server.slot_save_path, server.pooling) == (tmp_path, "last")
    assert (server.slots, server.metrics, server.props) == (False, True, True)
    assert defaults.sampling == SamplingParams(temperature=0.5, top_k=0, seed=3, samplers=("top_k", "temperature"))
    assert defaults.max_tokens == 7
    assert engine.chat_template == "{{ messages }}"
    assert defaults.template_variables == {"a": 1, "enable_thinking": False}
    assert defaults.reasoning_format == "none"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--top-p", "2"], "the default of top_p is wrong: Input should be less than or equal to 1"),
        (["--temp", "hot"], "'hot' is not a number"),
        (["--samplers", "magic"], "the sampler 'magic' is not known"),
        (["--slot-save-path", "/nowhere/at/all"], "there is no folder /nowhere/at/all"),
        (["--api-key", ","], "it is empty"),
        (["--api-key-file", "/nowhere"], "/nowhere cannot be read"),
        (["--chat-template", "llama2"], "'llama2' is no Jinja template"),
        (["--chat-template-kwargs", "[]"], "an object in JSON"),
        (["-fa", "maybe"], "invalid choice: 'maybe'"),
        (["--fit", "on"], "invalid choice: 'on'"),
        (["--paralell", "2"], "there is no flag --paralell; did you mean --parallel?"),
        (["--zzz"], "there is no flag --zzz; see pascal-engine --help"),
        (["other.gguf"], "'other.gguf' belongs to no flag"),
    ],
)
def test_what_is_wrong_is_one_sentence(flags: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert words in complaint(capsys, *flags)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_the_engine_cannot_do_is_refused_with_its_reason(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert complaint(capsys, name, "x") == f"pascal-engine: error: {name} is not supported: {REFUSED[name]}"


@pytest.mark.parametrize("name", ["--spec-draft-n-max", "--spec-ngram-size-n", "--prio-draft", "--draft-whatever"])
def test_flags_of_drafts_are_refused_by_their_kind(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "there is no speculative decoding" in complaint(capsys, name, "3")


def test_what_changes_no_answer_changes_no_setting() -> None:
    plain = settings()
    for flag in NEUTRAL:
        for name in flag.names:
            values = [[]] if flag.values is None else [[value] for value in flag.values or ("1",)]
            assert all(settings(name, *value) == plain for value in values)


def test_no_flag_is_both_accepted_and_refused() -> None:
    assert not {name for flag in NEUTRAL for name in flag.names} & REFUSED.keys()


def test_environment_variables_stand_for_flags_and_flags_win(capsys: pytest.CaptureFixture[str]) -> None:
    given = settings(
        "--port", "2", LLAMA_ARG_PORT="1", LLAMA_ARG_CTX_SIZE="64", LLAMA_ARG_ENDPOINT_METRICS="1", LLAMA_API_KEY="k"
    )
    assert (given.port, given.engine.ctx_size, given.server.metrics) == (2, 64, True)
    assert given.server.api_keys == ("k",)
    assert not settings(LLAMA_ARG_ENDPOINT_SLOTS="off").server.slots
    assert "LLAMA_ARG_" in complaint(capsys, LLAMA_ARG_ENDPOINT_SLOTS="perhaps")
