"""Batches with fewer records: what compaction writes. Offsets, producer fields and the last offset stay."""

from collections.abc import Callable

from headrace.records.batch import (
    COMPRESSION_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    TIMESTAMP_TYPE_FLAG,
    TRANSACTIONAL_FLAG,
    Batch,
)
from headrace.records.builder import BatchFields, assemble
from headrace.records.compression import compress
from headrace.records.reader import record_bytes
from headrace.records.spans import iter_spans
from headrace.records.varint import encode_varint

_FLAGS_KEPT = COMPRESSION_MASK | TIMESTAMP_TYPE_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG
_FLAGS_OF_EMPTY = TIMESTAMP_TYPE_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG


def filter_batch(batch: Batch, keep: Callable[[int], bool], *, delete_horizon_ms: int | None = None) -> bytes:
    """The batch with only the records whose offset delta `keep` accepts, compressed with its own codec.

    `delete_horizon_ms` sets the horizon; a batch that has one keeps it when None is given. If nothing is kept
    the result is b"": whether an empty batch must stay for its producer is the caller's business.
    """
    horizon = batch.delete_horizon_ms if delete_horizon_ms is None else delete_horizon_ms
    retained = _Retained(batch, horizon)
    data = record_bytes(batch)
    for span in iter_spans(data, batch.count):
        if keep(span.offset_delta):
            retained.add(data[span.offset_position : span.end], span.timestamp_delta)
    return retained.build()


def empty_batch(batch: Batch) -> bytes:
    """A batch without records that still tells the producer's last sequence and the last offset."""
    fields = BatchFields(
        base_offset=batch.base_offset,
        last_offset_delta=batch.last_offset_delta,
        leader_epoch=batch.leader_epoch,
        attributes=batch.attributes & _FLAGS_OF_EMPTY,
        base_timestamp=-1,
        max_timestamp=batch.max_timestamp,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        record_count=0,
    )
    return assemble(fields, b"")


class _Retained:
    """Collects the records that stay, with timestamps relative to the new base."""

    __slots__ = ("append_time", "base", "batch", "body", "count", "horizon", "timestamp_max")

    def __init__(self, batch: Batch, horizon: int | None) -> None:
        self.batch = batch
        self.horizon = horizon
        self.append_time = batch.max_timestamp if batch.timestamp_type else None
        self.base = horizon
        self.body = bytearray()
        self.count = 0
        self.timestamp_max = -1

    def add(self, tail: bytes, timestamp_delta: int) -> None:
        """Append one record; `tail` is everything from its offset delta on."""
        timestamp = self.append_time
        if timestamp is None:
            timestamp = self.batch.base_timestamp + timestamp_delta
        if self.base is None:
            self.base = timestamp
        if timestamp > self.timestamp_max:
            self.timestamp_max = timestamp
        delta = encode_varint(timestamp - self.base)
        self.body += encode_varint(1 + len(delta) + len(tail))
        self.body += b"\x00"
        self.body += delta
        self.body += tail
        self.count += 1

    def build(self) -> bytes:
        if self.base is None or not self.count:
            return b""
        batch = self.batch
        fields = BatchFields(
            base_offset=batch.base_offset,
            last_offset_delta=batch.last_offset_delta,
            leader_epoch=batch.leader_epoch,
            attributes=batch.attributes & _FLAGS_KEPT | (0 if self.horizon is None else DELETE_HORIZON_FLAG),
            base_timestamp=self.base,
            max_timestamp=self.timestamp_max if self.append_time is None else self.append_time,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            record_count=self.count,
        )
        return assemble(fields, compress(batch.compression, self.body))
