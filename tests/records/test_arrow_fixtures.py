"""Logs that Kafka wrote, read as columns: the same records that Kafka's own consumer was given."""

import json
import pathlib
import tarfile
from struct import Struct
from typing import Any

import pyarrow as pa
import pytest

from headrace.records.arrow_reader import read_columns

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures"
ABORTED_ENTRY = Struct(">hqqqq")
TOPICS = ["plain", "codecs", "transactional", "compacted", "appendtime", "rolled"]


def files_of(topic: str) -> dict[int, dict[str, bytes]]:
    """The partitions of a topic, each with its log and its index of aborted transactions."""
    partitions: dict[int, dict[str, bytes]] = {}
    with tarfile.open(FIXTURES / "kafka-4.3.1-clean-shutdown.tar.gz") as archive:
        for member in sorted(archive.getmembers(), key=lambda member: member.name):
            directory, _, name = member.name.removeprefix("data/").partition("/")
            found_topic, _, partition = directory.rpartition("-")
            opened = archive.extractfile(member) if found_topic == topic else None
            if opened is not None:
                files = partitions.setdefault(int(partition), {".log": b"", ".txnindex": b""})
                suffix = pathlib.PurePath(name).suffix
                if suffix in files:
                    files[suffix] += opened.read()
    return partitions


def aborted_in(index: bytes) -> list[tuple[int, int]]:
    return [(producer_id, first) for _, producer_id, first, _, _ in ABORTED_ENTRY.iter_unpack(index)]


def spelled(field: bytes | None) -> Any:
    """As the expectations spell it: long values by their length alone."""
    return field if field is None else {"len": len(field)} if len(field) >= 200 else field.decode()


def rows_of(partition: int, columns: pa.RecordBatch) -> list[list[Any]]:
    times = columns["timestamp"].cast(pa.int64()).to_pylist()
    return [
        [
            partition,
            row["offset"],
            row["timestamp_type"] + 1,
            time,
            spelled(row["key"]),
            spelled(row["value"]),
            [[header["key"], spelled(header["value"])] for header in row["headers"]],
        ]
        for row, time in zip(columns.drop_columns(["timestamp"]).to_pylist(), times, strict=True)
    ]


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("topic", TOPICS)
def test_columns_hold_what_the_reference_consumer_was_given(topic: str, isolation: str) -> None:
    expected = json.loads((FIXTURES / "expected-records.json").read_text())[isolation][topic]
    rows = []
    for partition, files in sorted(files_of(topic).items()):
        aborted = aborted_in(files[".txnindex"]) if isolation == "read_committed" else None
        rows += rows_of(partition, read_columns(files[".log"], aborted=aborted))
    assert rows == expected
