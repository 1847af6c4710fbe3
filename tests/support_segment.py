"""Batches, segments and Kafka's own files for the tests of the log's lower half."""

import tarfile
from pathlib import Path

from headrace.log.segment import Segment
from headrace.log.settings import LogSettings
from headrace.ports import Disk
from headrace.records.builder import NewRecord, build_batch

FIXTURES = Path(__file__).parent / "fixtures"
NOW = 1_700_000_000_000
DIRECTORY = "/logs/topic-0"


def build(
    base_offset: int,
    count: int = 1,
    *,
    timestamp: int = NOW,
    value_size: int = 10,
    leader_epoch: int = 0,
    producer_id: int = -1,
) -> bytes:
    """A batch whose records are a millisecond apart."""
    return build_batch(
        [NewRecord(timestamp + index, b"k", b"v" * value_size) for index in range(count)],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=0 if producer_id >= 0 else -1,
    )


def new_segment(disk: Disk, base_offset: int = 0, **settings: int | bool) -> Segment:
    """An empty segment in a directory of its own."""
    disk.make_directory(DIRECTORY)
    return Segment.create(disk, DIRECTORY, base_offset, LogSettings(**settings), NOW)  # type: ignore[arg-type]


def reopened(disk: Disk, base_offset: int = 0, **settings: int | bool) -> Segment:
    """The same segment as another process would find it."""
    return Segment.open(disk, DIRECTORY, base_offset, LogSettings(**settings), NOW)  # type: ignore[arg-type]


def fill(segment: Segment, batches: int, **fields: int) -> list[bytes]:
    """Append batches of three records to an empty segment."""
    written = []
    for number in range(batches):
        data = build(segment.base_offset + 3 * number, 3, **fields)
        segment.append(segment.base_offset + 3 * number + 2, data)
        written.append(data)
    return written


def kafka_files(fixture: str, prefix: str) -> dict[str, bytes]:
    """The files below a directory that Kafka 4.3.1 wrote, by their name."""
    files = {}
    with tarfile.open(FIXTURES / f"kafka-4.3.1-{fixture}.tar.gz") as archive:
        for member in archive:
            if member.isfile() and member.name.startswith(f"data/{prefix}"):
                content = archive.extractfile(member)
                assert content is not None
                files[member.name.removeprefix(f"data/{prefix}").lstrip("/")] = content.read()
    return files
