"""Flags over environment over file."""

from __future__ import annotations

from pathlib import Path

import pytest

from decomp_router.config import Settings, SettingsError, load


def test_flags_override_the_environment_which_overrides_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "router.toml"
    file.write_text('upstream = "http://a:1/"\nport = 1\nhost = "0.0.0.0"\nmax_width = 2\n')
    monkeypatch.setenv("DECOMP_ROUTER_PORT", "2")
    monkeypatch.setenv("DECOMP_ROUTER_HOST", "::1")
    settings = load(file, {"host": "localhost"})
    assert (settings.upstream, settings.port, settings.host) == ("http://a:1", 2, "localhost")
    assert (settings.max_width, settings.fanout) == (2, "off")


def test_fan_out_is_off_and_only_this_machine_is_served_by_default() -> None:
    assert Settings().fanout == "off"
    assert Settings().host == "127.0.0.1"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("upstream = 'ftp://x'", "setting upstream: 'ftp://x' is not an address"),
        ("upstream = 'localhost:8080'", "setting upstream"),
        ("upstream = 'http://'", "setting upstream"),
        ("upstream = 'http://a:port'", "setting upstream"),
        ("port = 70000", "setting port"),
        ("fanout = 'always'", "setting fanout"),
        ("colour = 'red'", "setting colour"),
        ("port =", "is not valid TOML"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "router.toml"
    file.write_text(text)
    with pytest.raises(SettingsError, match=sentence) as problem:
        load(file, {})
    assert "\n" not in str(problem.value)


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no settings file"):
        load(tmp_path / "none.toml", {})
