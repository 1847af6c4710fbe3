"""The form of the node's own log."""

import io
import logging

import pytest

from headrace.server.log_lines import LineFormatter


@pytest.mark.parametrize("quoted", ["a\nb", "a\r\n[2026-01-01 00:00:00,000] INFO b", "a\x00b\u2028c\x1b[31m"])
def test_what_is_quoted_never_begins_a_line(quoted: str) -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LineFormatter())
    handler.handle(logging.LogRecord("headrace.x", logging.INFO, "f", 1, "a name: %s", (quoted,), None))
    line = stream.getvalue()
    assert line.endswith(" (headrace.x)\n")
    assert line[:-1].isprintable()


def test_letters_of_any_language_stay_as_they_are() -> None:
    record = logging.LogRecord("headrace.x", logging.INFO, "f", 1, "größer 日本語", (), None)
    assert "größer 日本語" in LineFormatter().format(record)
