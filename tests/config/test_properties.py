"""Properties files, read and written as Java does."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.config.properties import (
    MalformedProperties,
    format_properties,
    load_properties,
    parse_overrides,
    parse_properties,
)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a=b\nc:d\ne f\n", {"a": "b", "c": "d", "e": "f"}),
        ("  a  =  b  ", {"a": "b  "}),
        ("# one\n  ! two\n\n\t\na=1", {"a": "1"}),
        ("a=1\\\n   2\\\n\t3", {"a": "123"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\", {"a": "1"}),
        ("a=1\ra=2\r\nb=3", {"a": "2", "b": "3"}),
        ("k\\ e\\:y=v", {"k e:y": "v"}),
        ("a==b", {"a": "=b"}),
        ("a", {"a": ""}),
        ("=b", {"": "b"}),
        ("a=\\t\\n\\x\\u00e9", {"a": "\t\nxé"}),
        ("a=\\uD83D\\uDE00", {"a": "😀"}),
        ("\\\n#c=1\nd=2", {"d": "2"}),
        ("", {}),
    ],
)
def test_a_file_is_read_as_java_reads_it(text: str, values: dict[str, str]) -> None:
    assert parse_properties(text) == values


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\uzzzz", "a=\\u"])
def test_a_broken_escape_is_refused(text: str) -> None:
    with pytest.raises(MalformedProperties):
        parse_properties(text)


def test_bytes_are_latin_1_unless_told_otherwise() -> None:
    assert load_properties(b"a=\xe9") == {"a": "é"}
    assert load_properties("a=é".encode(), "utf-8") == {"a": "é"}


def test_what_is_written_is_ascii_with_comments_first() -> None:
    text = format_properties({"a key": " v=é", "b": "x\\y\n"}, ["by hand"])
    assert text == "#by hand\na\\ key=\\ v\\=\\u00E9\nb=x\\\\y\\n\n"


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"]))
    )
)
def test_what_is_written_reads_back(values: dict[str, str]) -> None:
    text = format_properties(values)
    assert text.isascii()
    assert parse_properties(text) == values


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    values: dict[str, str] | None = None
    with suppress(MalformedProperties):
        values = parse_properties(text)
    assert values is not None or "\\u" in text


def test_overrides_may_have_equals_signs_or_no_value() -> None:
    assert parse_overrides(["a=b=c", "d=", "e"]) == {"a": "b=c", "d": "", "e": ""}
