"""Batches of the metadata log as the quorum hands them on: offsets, epoch, and values it cannot read."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from headrace.ports import BytesLike
from headrace.records.batch import Batch, batches
from headrace.records.builder import NewRecord, build_batch
from headrace.records.errors import CorruptBatch
from headrace.records.quorum_control import QuorumRecord, read_quorum_records
from headrace.records.reader import read_records


class DataBatch(NamedTuple):
    """Values that were appended together, in the order of their offsets from `base_offset` on."""

    base_offset: int
    last_offset: int
    epoch: int
    append_timestamp: int
    size: int
    values: Sequence[bytes]


class ControlBatch(NamedTuple):
    """The quorum's own records."""

    base_offset: int
    last_offset: int
    epoch: int
    append_timestamp: int
    size: int
    records: Sequence[QuorumRecord]


def read_batches(buffer: BytesLike) -> Iterator[DataBatch | ControlBatch]:
    """Every complete batch in a buffer; CorruptBatch where a checksum is wrong."""
    for batch in batches(buffer):
        if not batch.crc_is_valid():
            raise CorruptBatch(f"the checksum of the batch at offset {batch.base_offset} is wrong")
        yield _control(batch) if batch.is_control else _data(batch)


def build_data_batch(values: Iterable[bytes], base_offset: int, epoch: int, now_ms: int) -> bytes:
    """A batch of values, as it goes to the log or to a snapshot."""
    return build_batch(
        [NewRecord(now_ms, None, value) for value in values], base_offset=base_offset, leader_epoch=epoch
    )


def _data(batch: Batch) -> DataBatch:
    return DataBatch(
        batch.base_offset,
        batch.last_offset,
        batch.leader_epoch,
        batch.max_timestamp,
        batch.size,
        [record.value or b"" for record in read_records(batch)],
    )


def _control(batch: Batch) -> ControlBatch:
    return ControlBatch(
        batch.base_offset,
        batch.last_offset,
        batch.leader_epoch,
        batch.max_timestamp,
        batch.size,
        list(read_quorum_records(batch)),
    )
