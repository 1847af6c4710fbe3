"""Partition directory names, plain and with Kafka's suffixes."""

import pytest

from headrace.log.directory_names import (
    NAME_LENGTH_MAX,
    DirectoryKind,
    NotAPartitionDirectory,
    directory_name,
    parse_directory_name,
    retired_name,
)
from headrace.types import TopicPartition

UNIQUE = bytes(range(16))


@pytest.mark.parametrize("topic", ["orders", "with-dash", "with.dot", "a_b", "x-1", "__cluster_metadata"])
def test_a_plain_name_parses_back(topic: str) -> None:
    partition = TopicPartition(topic, 12)
    assert parse_directory_name(directory_name(partition)) == (partition, DirectoryKind.CURRENT)


@pytest.mark.parametrize("kind", [DirectoryKind.DELETED, DirectoryKind.FUTURE, DirectoryKind.STRAY])
@pytest.mark.parametrize("topic", ["orders", "with-dash", "with.dot"])
def test_a_suffixed_name_parses_back(topic: str, kind: DirectoryKind) -> None:
    partition = TopicPartition(topic, 3)
    name = retired_name(partition, kind, UNIQUE)
    assert name == f"{topic}-3.{UNIQUE.hex()}{kind.value}"
    assert parse_directory_name(name) == (partition, kind)


def test_a_long_topic_is_cut_to_fit_when_deleted() -> None:
    name = retired_name(TopicPartition("t" * 249, 0), DirectoryKind.DELETED, UNIQUE)
    assert len(name) == NAME_LENGTH_MAX
    assert parse_directory_name(name).kind is DirectoryKind.DELETED


@pytest.mark.parametrize(
    "name", ["nodash", "-0", "topic-", "topic-x", "topic-0-delete", "topic-0.-stray", "topic-٣"]
)
def test_other_names_are_refused_and_named(name: str) -> None:
    with pytest.raises(NotAPartitionDirectory, match=name):
        parse_directory_name(name)
