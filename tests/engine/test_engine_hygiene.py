"""Prefix hygiene: what is dropped, and that a text which only resembles it is kept."""

import pytest

from pascal_engine.server.hygiene import without_volatile_headers

PROSE = "You are a careful engineer.\nx-session-id: 0b5e2c2e-1111\nAnswer briefly."


@pytest.mark.parametrize(
    "headers",
    [
        "x-anthropic-billing-header: cc_version=2.1.101.e51; cc_entrypoint=cli; cch=a5145;\n",
        "x-anthropic-billing-header: cc_version=2.1.101.e51; cc_entrypoint=cli; cch=a5145;",
        "x-anthropic-billing-header: cc_version=2.1.101.e51; cch=a5145\n",
        "X-Anthropic-Billing-Header: cch=00000;\r\n",
        "x-session-id: 0b5e2c2e-33b8-4a5e-9d0a-8a5e4fb0a001\n",
        "x-claude-code-session-id: 0b5e2c2e-33b8-4a5e-9d0a-8a5e4fb0a001\n",
        "X-Request-Id:req_011CSHoEeqs5C35K2UUqR7Fy\n",
        "x-conversation-id: 1234567890\nx-trace-id: 9f86d081884c7d65\nx-nonce: q1w2e3r4t5==\n",
        "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\n",
        "x-timestamp: 2026-01-31T12:00:00.123Z\nx-request-timestamp: 1769860800\n",
        "x-anthropic-billing-header: cch=a5145;\nx-session-id: 0b5e2c2e-33b8 \n",
    ],
)
def test_header_lines_are_dropped_and_nothing_else(headers: str) -> None:
    assert without_volatile_headers(headers + PROSE) == PROSE
    assert without_volatile_headers(headers) == ""


@pytest.mark.parametrize(
    "text",
    [
        "",
        PROSE,
        " x-session-id: 0b5e2c2e-33b8-4a5e\n",
        "x-anthropic-billing-header: is a line that agents send.",
        "x-anthropic-billing-header:\n",
        "x-anthropic-billing-header: cch=a5145 tells who pays.",
        "x-session-id: 0b5e2c2e-33b8-4a5e is the header to look for.",
        "x-session-id: mandatory\n",
        "x-session-id: 5\n",
        "x-session-id of 0b5e2c2e-33b8-4a5e\n",
        "session-id: 0b5e2c2e-33b8-4a5e\n",
        "x-timestamp: 2026-01-31\n",
        "x-timestamp: 1769860800 is when the ship sailed.",
        "Timestamp: 2026-01-31T12:00:00Z\n",
        "Today's date: 2026-01-31\n",
        "x-api-version: 2026013112\n",
    ],
)
def test_what_only_resembles_a_header_is_kept(text: str) -> None:
    assert without_volatile_headers(text) == text


def test_a_hostile_text_takes_no_time() -> None:
    billing = "x-anthropic-billing-header:"
    for hostile in (billing + " a=" * 300_000, billing + " " * 900_000 + "!", "x-nonce: " + "1" * 900_000 + "!"):
        assert without_volatile_headers(hostile) == hostile
    assert without_volatile_headers(billing + "a=b;" * 200_000 + "a=b c") == "a=b c"
