"""Records to batches: one pass over the records into one buffer, then header and checksum."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from crc32c import crc32c

from headrace.ports import BytesLike
from headrace.records.batch import (
    ATTRIBUTES_FIELD,
    CONTROL_FLAG,
    CRC,
    CRC_FIELD,
    DELETE_HORIZON_FLAG,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    TIMESTAMP_TYPE_FLAG,
    TRANSACTIONAL_FLAG,
)
from headrace.records.compression import Compression, compress
from headrace.records.varint import NULL_LENGTH, encode_varint

NewHeader = tuple[str, bytes | None]


class NewRecord(NamedTuple):
    """A record to be built; a plain tuple of the same shape does as well."""

    timestamp: int
    key: BytesLike | None
    value: BytesLike | None
    headers: Sequence[NewHeader] = ()


class BatchFields(NamedTuple):
    """The header fields that do not follow from the records."""

    base_offset: int
    last_offset_delta: int
    leader_epoch: int
    attributes: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int


def build_batch(
    records: Iterable[NewRecord | tuple[int, BytesLike | None, BytesLike | None, Sequence[NewHeader]]],
    *,
    base_offset: int = 0,
    offsets: Iterable[int] | None = None,
    last_offset: int | None = None,
    compression: Compression = Compression.NONE,
    level: int | None = None,
    timestamp_type: int = 0,
    log_append_time: int | None = None,
    delete_horizon_ms: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    leader_epoch: int = -1,
) -> bytes:
    """One batch. Offsets count up from `base_offset` unless given; `last_offset` keeps a gap at the end.

    With `log_append_time` the batch carries that time as its maximum and is marked LogAppendTime. Without
    records it is the empty batch that compaction leaves of a producer, and its maximum is that time or -1.
    """
    listed = records if isinstance(records, (list, tuple)) else list(records)
    deltas: Iterable[int] = (
        range(len(listed)) if offsets is None else [offset - base_offset for offset in offsets]
    )
    base_timestamp = _base_timestamp(listed, delete_horizon_ms)
    body, delta_last, timestamp_max = _encode_records(listed, deltas, base_timestamp)
    if log_append_time is not None:
        timestamp_type, timestamp_max = 1, log_append_time
    attributes = (
        compression
        | (TIMESTAMP_TYPE_FLAG if timestamp_type else 0)
        | (TRANSACTIONAL_FLAG if transactional else 0)
        | (CONTROL_FLAG if control else 0)
        | (DELETE_HORIZON_FLAG if delete_horizon_ms is not None else 0)
    )
    fields = BatchFields(
        base_offset,
        delta_last if last_offset is None else last_offset - base_offset,
        leader_epoch,
        attributes,
        base_timestamp,
        timestamp_max,
        producer_id,
        producer_epoch,
        base_sequence,
        len(listed),
    )
    return assemble(fields, compress(compression, body, level) if listed else b"")


def assemble(fields: BatchFields, payload: BytesLike) -> bytes:
    """Header, checksum and payload joined."""
    size = HEADER_SIZE + len(payload)
    out = bytearray(HEADER_SIZE)
    HEADER.pack_into(
        out,
        0,
        fields.base_offset,
        size - LOG_OVERHEAD,
        fields.leader_epoch,
        MAGIC,
        0,
        fields.attributes,
        fields.last_offset_delta,
        fields.base_timestamp,
        fields.max_timestamp,
        fields.producer_id,
        fields.producer_epoch,
        fields.base_sequence,
        fields.record_count,
    )
    out += payload
    with memoryview(out) as view:
        CRC.pack_into(out, CRC_FIELD, crc32c(view[ATTRIBUTES_FIELD:]))
    return bytes(out)


def _base_timestamp(records: Sequence[NewRecord | tuple[object, ...]], delete_horizon_ms: int | None) -> int:
    if delete_horizon_ms is not None:
        return delete_horizon_ms
    return records[0][0] if records else -1  # type: ignore[return-value]


def _encode_records(
    records: Sequence[tuple[int, BytesLike | None, BytesLike | None, Sequence[NewHeader]]],
    deltas: Iterable[int],
    base_timestamp: int,
) -> tuple[bytearray, int, int]:
    """The records' bytes, the last offset delta and the largest timestamp."""
    out = bytearray()
    delta = -1
    timestamp_max = -1
    for delta, (timestamp, key, value, headers) in zip(deltas, records, strict=True):
        if timestamp > timestamp_max:
            timestamp_max = timestamp
        body = bytearray(b"\x00")
        body += encode_varint(timestamp - base_timestamp)
        body += encode_varint(delta)
        _append_field(body, key)
        _append_field(body, value)
        body += encode_varint(len(headers))
        for name, header_value in headers:
            _append_field(body, name.encode())
            _append_field(body, header_value)
        out += encode_varint(len(body))
        out += body
    return out, delta, timestamp_max


def _append_field(body: bytearray, field: BytesLike | None) -> None:
    if field is None:
        body += NULL_LENGTH
    else:
        body += encode_varint(len(field))
        body += field
