"""Checkpoint files and the mark of a clean stop, byte for byte as Kafka writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.log import checkpoints
from headrace.log.checkpoints import CorruptCheckpoint, read_offsets, write_offsets
from headrace.log.meta_properties import (
    MetaProperties,
    encode_meta_properties,
    parse_properties,
    read_meta_properties,
    write_meta_properties,
)
from headrace.testing.memory_disk import MemoryDisk
from headrace.types import TopicPartition
from tests.support_segment import kafka_files


@pytest.fixture
def disk() -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_directory("/logs")
    return disk


@pytest.mark.parametrize(
    "name",
    [
        checkpoints.RECOVERY_POINT,
        checkpoints.LOG_START_OFFSET,
        checkpoints.REPLICATION_OFFSET,
        checkpoints.CLEANER_OFFSET,
    ],
)
def test_kafkas_offset_checkpoints_are_read_and_written_alike(disk: MemoryDisk, name: str) -> None:
    content = kafka_files("clean-shutdown", name)[""]
    disk.replace(f"/logs/{name}", content)
    offsets = read_offsets(disk, f"/logs/{name}")
    write_offsets(disk, "/logs/copy", offsets)
    assert disk.read("/logs/copy") == content


def test_an_offset_checkpoint_says_what_kafka_noted(disk: MemoryDisk) -> None:
    disk.replace("/logs/r", kafka_files("clean-shutdown", checkpoints.RECOVERY_POINT)[""])
    offsets = read_offsets(disk, "/logs/r")
    assert offsets[TopicPartition("rolled", 0)] == 3000
    assert offsets[TopicPartition("__consumer_offsets", 1)] == 0
    assert len(offsets) == 11


def test_missing_and_empty_checkpoints_say_nothing(disk: MemoryDisk) -> None:
    assert read_offsets(disk, "/logs/missing") == {}
    disk.replace("/logs/empty", b"")
    assert read_offsets(disk, "/logs/empty") == {}
    disk.replace("/logs/cut", b"0\n")
    assert read_offsets(disk, "/logs/cut") == {}


def test_a_checkpoint_is_durable_on_return(disk: MemoryDisk) -> None:
    write_offsets(disk, "/logs/r", {TopicPartition("t", 0): 5})
    disk.crash()
    assert disk.read("/logs/r") == b"0\n1\nt 0 5\n"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"1\n0\n", "version is 1"),
        (b"x\n0\n", "not a number"),
        (b"0\nmany\n", "not a number"),
        (b"0\n2\nt 0 5\n", "announces 2 entries and has 1"),
        (b"0\n0\nt 0 5\n", "announces 0 entries and has 1"),
        (b"0\n1\nt 0\n", "malformed"),
        (b"0\n1\nt zero 5\n", "malformed"),
        (b"0\n1\nt 0 5 6\n", "malformed"),
        (b"0\n1\n\xff\xfe 0 5\n", "not text"),
    ],
)
def test_damaged_checkpoints_are_refused_by_name(disk: MemoryDisk, content: bytes, reason: str) -> None:
    disk.replace("/logs/r", content)
    with pytest.raises(CorruptCheckpoint, match=reason) as refusal:
        read_offsets(disk, "/logs/r")
    assert refusal.value.path == "/logs/r"


@given(
    st.dictionaries(
        st.builds(
            TopicPartition, st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True), st.integers(0, 999)
        ),
        st.integers(0, 2**63 - 1),
    )
)
def test_offsets_survive_the_round(offsets: dict[TopicPartition, int]) -> None:
    disk = MemoryDisk()
    write_offsets(disk, "/r", offsets)
    assert read_offsets(disk, "/r") == offsets


def test_the_mark_of_a_clean_stop_is_kafkas(disk: MemoryDisk) -> None:
    content = kafka_files("clean-shutdown", checkpoints.CLEAN_SHUTDOWN)[""]
    disk.replace(f"/logs/{checkpoints.CLEAN_SHUTDOWN}", content)
    assert checkpoints.read_clean_shutdown(disk, "/logs") == 391
    checkpoints.write_clean_shutdown(disk, "/logs", 391)
    disk.crash()
    assert disk.read(f"/logs/{checkpoints.CLEAN_SHUTDOWN}") == content


def test_removing_the_mark_of_a_clean_stop_is_durable(disk: MemoryDisk) -> None:
    checkpoints.write_clean_shutdown(disk, "/logs", 7)
    assert checkpoints.has_clean_shutdown(disk, "/logs")
    checkpoints.remove_clean_shutdown(disk, "/logs")
    disk.crash()
    assert not checkpoints.has_clean_shutdown(disk, "/logs")
    checkpoints.remove_clean_shutdown(disk, "/logs")


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"version":0}', b'{"brokerEpoch":"x"}'])
def test_an_unreadable_mark_still_marks_a_clean_stop(disk: MemoryDisk, content: bytes) -> None:
    disk.replace(f"/logs/{checkpoints.CLEAN_SHUTDOWN}", content)
    assert checkpoints.read_clean_shutdown(disk, "/logs") is None
    assert checkpoints.has_clean_shutdown(disk, "/logs")


def test_kafkas_meta_properties_are_read_and_written_alike(disk: MemoryDisk) -> None:
    content = kafka_files("clean-shutdown", "meta.properties")[""]
    disk.replace("/logs/meta.properties", content)
    properties = read_meta_properties(disk, "/logs")
    assert properties == MetaProperties("aGVhZHJhY2UtZml4dHVyZQ", 1, "8o1OvpsmcZiKyc550M_RBg", 1)
    assert encode_meta_properties(properties, 1_794_710_664_000) == content


def test_meta_properties_are_durable_on_return(disk: MemoryDisk) -> None:
    properties = MetaProperties("cluster=one", 3)
    write_meta_properties(disk, "/logs", properties, 0)
    disk.crash()
    assert read_meta_properties(disk, "/logs") == properties


def test_a_directory_without_meta_properties_is_not_formatted(disk: MemoryDisk) -> None:
    assert read_meta_properties(disk, "/logs") is None


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"version=9\ncluster.id=c\nnode.id=1\n", "version 9"),
        (b"version=1\nnode.id=1\n", "must be there"),
        (b"version=1\ncluster.id=c\n", "must be there"),
        (b"version=1\ncluster.id=c\nnode.id=one\n", "invalid literal"),
        (b"\xff\xfe", "decode"),
    ],
)
def test_damaged_meta_properties_are_refused(disk: MemoryDisk, content: bytes, reason: str) -> None:
    disk.replace("/logs/meta.properties", content)
    with pytest.raises(CorruptCheckpoint, match=reason):
        read_meta_properties(disk, "/logs")


def test_java_properties_are_understood() -> None:
    text = "# c\n! c\n\n a = 1\nb:2\nc 3\nd\\ e=\\u0041\\t\\=\nlong=one\\\n   two\nempty\nback=\\\\\n"
    assert parse_properties(text) == {
        "a": "1",
        "b": "2",
        "c": "3",
        "d e": "A\t=",
        "long": "onetwo",
        "empty": "",
        "back": "\\",
    }
