"""Varints: every value survives, and the edges are those of Kafka's readers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.records.varint import (
    TABLE_SIZE,
    VARINT_TABLE,
    InvalidVarint,
    encode_unsigned,
    encode_varint,
    read_varint,
    read_varlong,
    size_of_varint,
)

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)


@given(INT32)
def test_an_int32_survives(value: int) -> None:
    encoded = encode_varint(value)
    assert read_varint(b"xy" + encoded + b"z", 2) == (value, 2 + len(encoded))
    assert size_of_varint(value) == len(encoded)


@given(INT64)
def test_an_int64_survives(value: int) -> None:
    encoded = encode_varint(value)
    assert read_varlong(encoded + b"z", 0) == (value, len(encoded))
    assert size_of_varint(value) == len(encoded)


def test_the_table_holds_what_encoding_gives() -> None:
    assert [encode_unsigned(value << 1) for value in range(TABLE_SIZE)] == list(VARINT_TABLE)


@pytest.mark.parametrize(
    ("encoded", "value"),
    [
        (b"\x00", 0),
        (b"\x01", -1),
        (b"\x7f", -64),
        (b"\x80\x01", 64),
        (b"\x80\x00", 0),
        (b"\xfe\xff\xff\xff\x0f", 2**31 - 1),
        (b"\xff\xff\xff\xff\x0f", -(2**31)),
        # Bits beyond the 32nd are dropped, as Kafka does.
        (b"\xfe\xff\xff\xff\x7f", 2**31 - 1),
    ],
)
def test_a_varint_reads_as_kafka_reads_it(encoded: bytes, value: int) -> None:
    assert read_varint(encoded, 0) == (value, len(encoded))


def test_a_varint_of_more_than_five_bytes_is_refused() -> None:
    with pytest.raises(InvalidVarint):
        read_varint(b"\x80" * 5 + b"\x00", 0)


def test_a_varlong_of_more_than_ten_bytes_is_refused() -> None:
    assert read_varlong(b"\xff" * 9 + b"\x01", 0) == (-(2**63), 10)
    with pytest.raises(InvalidVarint):
        read_varlong(b"\x80" * 10 + b"\x00", 0)


@pytest.mark.parametrize("read", [read_varint, read_varlong])
def test_a_varint_cut_short_is_an_index_error(read: object) -> None:
    assert callable(read)
    with pytest.raises(IndexError):
        read(b"\x80\x80", 0)
