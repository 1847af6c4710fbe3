"""The file that ties a partition's directory to a topic id."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.log.checkpoints import CorruptCheckpoint
from headrace.log.partition_metadata import decode_id, encode_id, read_topic_id, write_topic_id
from headrace.testing.memory_disk import MemoryDisk
from tests.support_segment import kafka_files


@pytest.fixture
def disk() -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_directory("/t-0")
    return disk


def test_kafkas_own_file_is_read_and_written_alike(disk: MemoryDisk) -> None:
    content = kafka_files("clean-shutdown", "rolled-0")["partition.metadata"]
    disk.replace("/t-0/partition.metadata", content)
    topic_id = read_topic_id(disk, "/t-0")
    assert topic_id is not None
    assert encode_id(topic_id) == "PqyM5ZFhQo-Cr6hLmlhX8w"
    write_topic_id(disk, "/t-0", topic_id)
    disk.crash()
    assert disk.read("/t-0/partition.metadata") == content


def test_a_directory_without_the_file_has_no_topic_id(disk: MemoryDisk) -> None:
    assert read_topic_id(disk, "/t-0") is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"version: 0",
        b"version: -1\ntopic_id: PqyM5ZFhQo-Cr6hLmlhX8w",
        b"version: zero\ntopic_id: PqyM5ZFhQo-Cr6hLmlhX8w",
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
        b"version: 0\ntopic_id: short",
        b"version: 0\nno colon",
        b"\xff\xff",
    ],
)
def test_damaged_files_are_refused_by_name(disk: MemoryDisk, content: bytes) -> None:
    disk.replace("/t-0/partition.metadata", content)
    with pytest.raises(CorruptCheckpoint) as refusal:
        read_topic_id(disk, "/t-0")
    assert refusal.value.path == "/t-0/partition.metadata"


@given(st.uuids())
def test_ids_survive_the_round(topic_id: UUID) -> None:
    assert decode_id(encode_id(topic_id)) == topic_id
    assert len(encode_id(topic_id)) == 22
