"""Which partition has the state of a key: as Java's hash of strings has it."""

import pytest

from headrace.coordinator.placement import java_hash, partition_for


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("a", 97), ("group", 98629247), ("consumer-group-1", 147483020), ("\U0001f600", 1772899)],
)
def test_strings_hash_as_in_java(text: str, expected: int) -> None:
    assert java_hash(text) == expected


def test_the_smallest_hash_lands_in_partition_zero() -> None:
    assert java_hash("polygenelubricants") == -(2**31)
    assert partition_for("polygenelubricants", 50) == 0


def test_negative_hashes_count_by_their_size() -> None:
    assert java_hash("orders") < 0
    assert partition_for("orders", 50) == abs(java_hash("orders")) % 50
