"""Batches that a real Kafka wrote: read record for record, and built again byte for byte."""

import json
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from headrace.records.batch import Batch, batches
from headrace.records.builder import build_batch
from headrace.records.compression import Compression, compress, decompress
from headrace.records.filter import filter_batch
from headrace.records.reader import Record, read_records

FIXTURES = Path(__file__).parent.parent / "fixtures"
TOPICS = {"codecs": 1, "plain": 2, "appendtime": 1, "rolled": 1}


@cache
def logs_of(topic: str, partition: int) -> bytes:
    """The segments of a partition, joined."""
    prefix = f"data/{topic}-{partition}/"
    with tarfile.open(FIXTURES / "kafka-4.3.1-clean-shutdown.tar.gz") as archive:
        names = sorted(name for name in archive.getnames() if prefix in "/" + name and name.endswith(".log"))
        opened = [archive.extractfile(name) for name in names]
        return b"".join(file.read() for file in opened if file is not None)


@cache
def expected() -> dict[str, list[list[Any]]]:
    content: dict[str, dict[str, list[list[Any]]]] = json.loads(
        (FIXTURES / "expected-records.json").read_text()
    )
    return content["read_uncommitted"]


def spelled(field: bytes | None) -> Any:
    return field if field is None else {"len": len(field)} if len(field) >= 200 else field.decode()


def row_of(partition: int, batch: Batch, record: Record) -> list[Any]:
    headers = [[name, spelled(value)] for name, value in record.headers]
    key, value = spelled(record.key), spelled(record.value)
    return [partition, record.offset, batch.timestamp_type + 1, record.timestamp, key, value, headers]


@pytest.mark.parametrize(("topic", "partitions"), TOPICS.items())
def test_records_are_those_that_kafka_s_consumer_saw(topic: str, partitions: int) -> None:
    rows = [
        row_of(partition, batch, record)
        for partition in range(partitions)
        for batch in batches(logs_of(topic, partition))
        for record in read_records(batch)
    ]
    assert sorted(rows, key=lambda row: row[:2]) == sorted(expected()[topic], key=lambda row: row[:2])


def test_every_codec_is_in_the_log_and_every_checksum_is_right() -> None:
    found = list(batches(logs_of("codecs", 0)))
    assert {batch.compression for batch in found} == set(Compression)
    assert all(batch.crc_is_valid() for batch in found)


def test_plain_batches_are_built_again_byte_for_byte() -> None:
    rebuilt = 0
    for topic, partitions in TOPICS.items():
        for partition in range(partitions):
            for batch in batches(logs_of(topic, partition)):
                if (
                    batch.compression is Compression.NONE
                    and not batch.is_control
                    and not batch.timestamp_type
                ):
                    assert rebuild(batch) == bytes(batch.data)
                    rebuilt += 1
    assert rebuilt > 20


def rebuild(batch: Batch) -> bytes:
    records = [(found.timestamp, found.key, found.value, found.headers) for found in read_records(batch)]
    return build_batch(
        records,
        base_offset=batch.base_offset,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        transactional=batch.is_transactional,
        leader_epoch=batch.leader_epoch,
    )


@cache
def java_batches() -> dict[Compression, bytes]:
    """One batch of the same records in every codec, built by the Java client's classes."""
    content: dict[str, str] = json.loads((FIXTURES / "records-java.json").read_text())
    return {Compression[name.upper()]: bytes.fromhex(data) for name, data in content.items()}


@pytest.mark.parametrize("codec", Compression)
def test_batches_of_the_java_client_hold_the_same_records_in_every_codec(codec: Compression) -> None:
    batch = Batch(memoryview(java_batches()[codec]))
    assert batch.compression is codec
    assert batch.crc_is_valid()
    plain = Batch(memoryview(java_batches()[Compression.NONE]))
    assert list(read_records(batch)) == list(read_records(plain))


def test_plain_batches_of_the_java_client_are_built_again_byte_for_byte() -> None:
    data = java_batches()[Compression.NONE]
    assert rebuild(Batch(memoryview(data))) == data


def test_framing_is_the_java_client_s() -> None:
    """Compressors may differ in what they find; headers and ends may not."""
    edges = {Compression.GZIP: (8, 0), Compression.SNAPPY: (16, 0), Compression.LZ4: (7, 4)}
    for codec, (head, tail) in edges.items():
        theirs = bytes(Batch(memoryview(java_batches()[codec])).payload)
        ours = bytes(compress(codec, decompress(codec, theirs)))
        assert ours[:head] == theirs[:head]
        assert ours[len(ours) - tail :] == theirs[len(theirs) - tail :]


def test_keeping_every_record_keeps_plain_batches_as_they_are() -> None:
    for batch in batches(logs_of("plain", 0)):
        assert filter_batch(batch, lambda _: True) == bytes(batch.data)
