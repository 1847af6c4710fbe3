"""Records to batches: one pass over the records into one buffer, then header and checksum."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

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
from headrace.records.checksum import crc32c
from headrace.records.compression import Compression, compress
from headrace.records.varint import NULL_LENGTH, TABLE_SIZE, VARINT_TABLE, encode_varint, wrap_long
from headrace.types import NO_TIMESTAMP

NewHeader = tuple[str, bytes | None]


class NewRecord(NamedTuple):
    """A record to be built; a plain tuple of the same shape does as well."""

    timestamp: int
    key: BytesLike | None
    value: BytesLike | None
    headers: Sequence[NewHeader] = ()


AnyRecord: TypeAlias = NewRecord | tuple[int, BytesLike | None, BytesLike | None, Sequence[NewHeader]]

_ATTRIBUTES: Final = b"\x00"
_NO_HEADERS: Final = b"\x00"


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
    records: Iterable[AnyRecord],
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
    listed: Sequence[AnyRecord] = records if isinstance(records, (list, tuple)) else list(records)
    deltas: Sequence[int] = range(len(listed))
    if offsets is not None:
        deltas = [offset - base_offset for offset in offsets]
    base_timestamp = listed[0][0] if listed else NO_TIMESTAMP
    if delete_horizon_ms is not None:
        base_timestamp = delete_horizon_ms
    body, timestamp_max = _encode_records(listed, deltas, base_timestamp)
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
        _last_delta(deltas) if last_offset is None else last_offset - base_offset,
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
    out = bytearray(size)
    out[HEADER_SIZE:] = payload
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
    with memoryview(out) as view:
        CRC.pack_into(out, CRC_FIELD, crc32c(view[ATTRIBUTES_FIELD:]))
    return bytes(out)


def _last_delta(deltas: Sequence[int]) -> int:
    return deltas[-1] if deltas else -1


def _encode_records(
    records: Sequence[AnyRecord], deltas: Sequence[int], base_timestamp: int
) -> tuple[bytes, int]:
    """The records' bytes and their largest timestamp."""
    parts: list[BytesLike] = []
    add = parts.extend
    table, table_size = VARINT_TABLE, TABLE_SIZE
    timestamp_max, previous, timestamp_delta = NO_TIMESTAMP, None, b""
    for offset, (timestamp, key, value, headers) in zip(deltas, records, strict=True):
        if timestamp != previous:
            previous = timestamp
            timestamp_delta = encode_varint(wrap_long(timestamp - base_timestamp))
            if timestamp > timestamp_max:
                timestamp_max = timestamp
        offset_delta = table[offset] if 0 <= offset < table_size else encode_varint(offset)
        size = 1 + len(timestamp_delta) + len(offset_delta)
        if key is None:
            key, key_size = b"", NULL_LENGTH
        else:
            key_size = table[len(key)] if len(key) < table_size else encode_varint(len(key))
        if value is None:
            value, value_size = b"", NULL_LENGTH
        else:
            value_size = table[len(value)] if len(value) < table_size else encode_varint(len(value))
        tail = _encode_headers(headers) if headers else _NO_HEADERS
        size += len(key_size) + len(key) + len(value_size) + len(value) + len(tail)
        length = table[size] if size < table_size else encode_varint(size)
        add((length, _ATTRIBUTES, timestamp_delta, offset_delta, key_size, key, value_size, value, tail))
    return b"".join(parts), timestamp_max


def _encode_headers(headers: Sequence[NewHeader]) -> bytes:
    parts: list[BytesLike] = [encode_varint(len(headers))]
    for name, value in headers:
        encoded = name.encode()
        parts += (encode_varint(len(encoded)), encoded)
        parts += (NULL_LENGTH,) if value is None else (encode_varint(len(value)), value)
    return b"".join(parts)
