"""Decides whether a batch may be stored, and gives it the timestamps and the codec its topic asks for.

The rules, their order and their error codes are those of Apache Kafka 4.3.1, with one promise on top: what
would poison consumers is never stored. Kafka does not look at offset deltas in plain batches, nor at record
lengths in compressed ones; here both must be right. Offsets and the leader epoch are stamped by the caller.
"""

from struct import Struct
from typing import Final

from headrace.errors import ErrorCode
from headrace.ports import BytesLike
from headrace.records.batch import (
    ATTRIBUTES_FIELD,
    COMPRESSION_MASK,
    CONTROL_FLAG,
    CRC,
    CRC_FIELD,
    DELETE_HORIZON_FLAG,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_FIELD,
    MAX_TIMESTAMP_FIELD,
    SIZE_FIELD,
    TIMESTAMP_TYPE_FLAG,
    TRANSACTIONAL_FLAG,
    Batch,
)
from headrace.records.builder import BatchFields, assemble
from headrace.records.checksum import crc32c
from headrace.records.compression import Compression, compress, decompress
from headrace.records.errors import (
    CorruptBatch,
    DecompressedTooLarge,
    MalformedRecords,
    UndecompressableRecords,
)
from headrace.records.inspection import Inspection, inspect
from headrace.records.reader import record_bytes
from headrace.records.rules import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    RECORDS_AT_ONCE_MAX,
    HeavyBatch,
    Origin,
    RecordError,
    RecordsRefused,
    Validated,
    ValidationRules,
)
from headrace.records.scan import scan
from headrace.records.spans import iter_spans
from headrace.records.varint import encode_varint, read_varint
from headrace.records.walk import lone_is_plain
from headrace.types import NO_TIMESTAMP

__all__ = ["Origin", "RecordError", "RecordsRefused", "Validated", "ValidationRules", "validate"]

PRODUCE_VERSION_LATEST: Final = 13
# Beyond this a timestamp may overflow where Kafka adds or subtracts: the thorough check follows it there.
_TIMESTAMP_SAFE: Final = 2**61
_PRODUCE_VERSION_OF_ZSTD: Final = 7
_FLAGS_KNOWN: Final = (
    COMPRESSION_MASK | TIMESTAMP_TYPE_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG | DELETE_HORIZON_FLAG
)
_ATTRIBUTES: Final = Struct(">h")
_TIMESTAMP: Final = Struct(">q")
_LENGTH: Final = Struct(">i")
# The shortest batch of any format after its length field, and the formats that Kafka knows the layout of.
_LENGTH_MIN: Final = 14
_MAGIC_NEWEST: Final = 2


def validate(
    buffer: bytearray | memoryview | bytes | Validated,
    rules: ValidationRules,
    now_ms: int,
    *,
    produce_version: int = PRODUCE_VERSION_LATEST,
) -> Validated:
    """The one batch in `buffer`, fit to be stored; RecordsRefused otherwise.

    Header fields are changed in place where the topic sets the time or the batch's maximum is wrong. A buffer
    that cannot be written to is copied. Bytes of an incomplete second batch are left out, as Kafka does. What
    was validated before is taken as it is. `HeavyBatch` if the rules ask for an answer at once, and there is
    too much to look at.
    """
    if type(buffer) is memoryview:
        view = buffer
    elif isinstance(buffer, Validated):
        return buffer
    else:
        view = memoryview(buffer)
    if view.readonly:
        view = memoryview(bytearray(view))
    plain = _validate_plain(view, rules, now_ms)
    if plain is not None:
        return plain
    try:
        batch = _only_batch(view, rules, produce_version)
        _check_header(batch, rules)
        return _validate_records(batch, rules, now_ms)
    except (CorruptBatch, MalformedRecords, UndecompressableRecords, DecompressedTooLarge) as failure:
        raise RecordsRefused(
            failure.code, f"{failure.message} in topic partition {rules.topic_partition}"
        ) from None


def _validate_plain(view: memoryview, rules: ValidationRules, now_ms: int) -> Validated | None:
    """The short way for what producers mostly send: one uncompressed batch that needs no change.

    None says nothing but that this is not it: all rules are then applied one by one.
    """
    size = len(view)
    if size < HEADER_SIZE or rules.timestamp_type != CREATE_TIME or rules.compression:
        return None
    batch = Batch(view, 0)
    count = batch.count
    if (
        batch.size != size
        or batch.magic != _MAGIC_NEWEST
        or batch.attributes & ~TRANSACTIONAL_FLAG
        or batch.base_offset
        or not 0 < count <= RECORDS_AT_ONCE_MAX
        or batch.last_offset_delta + 1 != count
        or batch.producer_id >= 0 > batch.base_sequence
        or (rules.max_message_bytes is not None and size > rules.max_message_bytes)
        or crc32c(view[ATTRIBUTES_FIELD:]) != batch.crc
    ):
        return None
    data = bytes(view[HEADER_SIZE:])
    earliest = latest = batch.base_timestamp
    if count != 1 or not lone_is_plain(data, keys_required=rules.compact):
        deltas = scan(data, count, keys_required=rules.compact, memory=rules.shapes)
        if deltas is None:
            return None
        earliest, latest = earliest + deltas[0], latest + deltas[1]
    if (
        latest != batch.max_timestamp
        or not 0 <= earliest <= latest < _TIMESTAMP_SAFE
        or earliest < now_ms - rules.before_max_ms
        or latest > now_ms + rules.after_max_ms
    ):
        return None
    return Validated(batch, latest, NO_TIMESTAMP, rebuilt=False)


def _only_batch(view: memoryview, rules: ValidationRules, produce_version: int) -> Batch:
    """The batch that fills the buffer, of the one format that is still taken."""
    size = _size_at(view, 0)
    if size is None:
        raise MalformedRecords(
            f"Produce requests with version {produce_version} must have at least one record batch "
            "per partition"
        )
    if view[MAGIC_FIELD] != _MAGIC_NEWEST:
        raise MalformedRecords(
            f"Produce requests with version {produce_version} are only allowed to contain record batches "
            f"with magic version 2, not {view[MAGIC_FIELD]}"
        )
    if size < HEADER_SIZE:
        raise CorruptBatch(
            f"Record batch is corrupt (the size {size} is smaller than the minimum allowed overhead "
            f"{HEADER_SIZE})"
        )
    batch = Batch(view, 0)
    if produce_version < _PRODUCE_VERSION_OF_ZSTD and batch.attributes & COMPRESSION_MASK == Compression.ZSTD:
        raise RecordsRefused(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"Produce requests with version {produce_version} are not allowed to use ZStandard compression",
        )
    if _size_at(view, size) is not None:
        raise MalformedRecords(
            f"Produce requests with version {produce_version} are only allowed to contain exactly one record "
            "batch per partition"
        )
    return batch


def _size_at(view: memoryview, position: int) -> int | None:
    """The size of the batch at `position` if all of it is there; CorruptBatch if it cannot be one."""
    left = len(view) - position
    if left < LOG_OVERHEAD:
        return None
    (length,) = _LENGTH.unpack_from(view, position + SIZE_FIELD)
    if length < _LENGTH_MIN:
        raise CorruptBatch(f"Record size {length} is less than the minimum record overhead ({_LENGTH_MIN})")
    if left <= MAGIC_FIELD:
        return None
    magic = view[position + MAGIC_FIELD]
    if magic > _MAGIC_NEWEST:
        raise CorruptBatch(f"Invalid magic found in record: {magic}")
    size: int = length + LOG_OVERHEAD
    return size if size <= left else None


def _check_header(batch: Batch, rules: ValidationRules) -> None:
    """What can be said of a batch without looking at its records."""
    partition = rules.topic_partition
    if rules.origin is Origin.CLIENT and batch.base_offset != 0:
        raise MalformedRecords(
            f"The baseOffset of the record batch in the append to {partition} should be 0, "
            f"but it is {batch.base_offset}"
        )
    _check_size(batch.size, rules)
    if not batch.crc_is_valid():
        raise CorruptBatch(f"Record is corrupt (stored crc = {batch.crc})")
    if batch.attributes & COMPRESSION_MASK > Compression.ZSTD:
        code = batch.attributes & COMPRESSION_MASK
        raise RecordsRefused(ErrorCode.UNKNOWN_SERVER_ERROR, f"Unknown compression type id: {code}")
    if rules.origin is Origin.CLIENT:
        _check_client_header(batch)


def _check_size(size: int, rules: ValidationRules) -> None:
    if rules.max_message_bytes is not None and size > rules.max_message_bytes:
        raise RecordsRefused(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"The record batch size in the append to {rules.topic_partition} is {size} bytes "
            f"which exceeds the maximum configured value of {rules.max_message_bytes}",
        )


def _check_client_header(batch: Batch) -> None:
    """Counts and producer fields as a client must set them."""
    if batch.last_offset_delta + 1 != batch.count or batch.count <= 0:
        raise MalformedRecords(_miscounted(batch))
    if batch.attributes & CONTROL_FLAG:
        raise MalformedRecords("Clients are not allowed to write control records")
    if batch.producer_id >= 0 > batch.base_sequence:
        raise MalformedRecords(
            f"Invalid sequence number {batch.base_sequence} in record batch with producerId "
            f"{batch.producer_id}"
        )


def _miscounted(batch: Batch) -> str:
    offsets = f"[{batch.base_offset}, {batch.last_offset}]"
    if batch.last_offset_delta < 0:
        return f"Batch has an invalid offset range: {offsets}"
    if batch.count <= 0:
        return f"Invalid reported count for record batch: {batch.count}"
    return f"Inconsistent batch offset range {offsets} and count of records {batch.count}"


def _validate_records(batch: Batch, rules: ValidationRules, now_ms: int) -> Validated:
    source = batch.compression
    target = source if rules.compression is None else rules.compression
    # Control batches are compressed by whoever wrote them or not at all.
    in_place = target == source or (source == Compression.NONE and batch.is_control)
    data = bytes(_inflated(batch, rules)) if batch.count else b""
    found = _examine(batch, data, rules, now_ms, in_place=in_place)
    append_time = now_ms if rules.timestamp_type == LOG_APPEND_TIME else NO_TIMESTAMP
    max_timestamp = found.max_timestamp if rules.timestamp_type == CREATE_TIME else now_ms
    if not in_place:
        rebuilt = _rebuild(batch, data, target, rules, max_timestamp, in_order=found.offsets_in_order)
        _check_size(rebuilt.size, rules)
        return Validated(rebuilt, max_timestamp, append_time, rebuilt=True)
    if not found.offsets_in_order:
        # In a compressed batch Kafka fails at this without a code of its own; a plain one it would store.
        code = ErrorCode.UNKNOWN_SERVER_ERROR if source else ErrorCode.INVALID_RECORD
        raise RecordsRefused(
            code,
            f"Offset deltas of the records do not count up from 0 in topic partition {rules.topic_partition}",
        )
    _set_max_timestamp(batch, rules.timestamp_type, max_timestamp)
    return Validated(batch, max_timestamp, append_time, rebuilt=False)


def _inflated(batch: Batch, rules: ValidationRules) -> BytesLike:
    if rules.at_once and batch.count > RECORDS_AT_ONCE_MAX:
        raise HeavyBatch(f"{batch.count} records in one batch")
    payload = batch.payload
    limit = rules.inflated_max(len(payload))
    try:
        return decompress(batch.compression, payload, limit)
    except DecompressedTooLarge:
        if limit == rules.decompressed_max:
            raise
        raise HeavyBatch(f"a batch of {len(payload)} bytes inflates to more than {limit}") from None


def _examine(batch: Batch, data: bytes, rules: ValidationRules, now_ms: int, *, in_place: bool) -> Inspection:
    """The quick check; and the thorough one wherever the quick one does not say that all is well."""
    if batch.count > 0 and not batch.timestamp_type:
        deltas = scan(data, batch.count, keys_required=rules.compact, memory=rules.shapes)
        if deltas is not None:
            earliest, latest = batch.base_timestamp + deltas[0], batch.base_timestamp + deltas[1]
            if rules.timestamp_type == LOG_APPEND_TIME or _in_bounds(earliest, latest, rules, now_ms):
                return Inspection(latest, offsets_in_order=True)
    return inspect(batch, data, rules, now_ms, in_place=in_place)


def _in_bounds(earliest: int, latest: int, rules: ValidationRules, now_ms: int) -> bool:
    """Whether all timestamps in a range are surely fine; records may have none, but then all of them."""
    if earliest == latest == NO_TIMESTAMP:
        return True
    return max(0, now_ms - rules.before_max_ms) <= earliest and latest <= min(
        _TIMESTAMP_SAFE, now_ms + rules.after_max_ms
    )


def _set_max_timestamp(batch: Batch, timestamp_type: int, max_timestamp: int) -> None:
    """Write timestamp type and maximum into the header, and the checksum if that changed anything."""
    if batch.timestamp_type == timestamp_type and batch.max_timestamp == max_timestamp:
        return
    flags = batch.attributes & _FLAGS_KNOWN & ~TIMESTAMP_TYPE_FLAG
    batch.attributes = flags | TIMESTAMP_TYPE_FLAG if timestamp_type == LOG_APPEND_TIME else flags
    batch.max_timestamp = max_timestamp
    _ATTRIBUTES.pack_into(batch.buffer, batch.position + ATTRIBUTES_FIELD, batch.attributes)
    _TIMESTAMP.pack_into(batch.buffer, batch.position + MAX_TIMESTAMP_FIELD, max_timestamp)
    batch.crc = crc32c(batch.data[ATTRIBUTES_FIELD:])
    CRC.pack_into(batch.buffer, batch.position + CRC_FIELD, batch.crc)


def _rebuild(
    batch: Batch,
    data: bytes,
    target: Compression,
    rules: ValidationRules,
    max_timestamp: int,
    *,
    in_order: bool,
) -> Batch:
    """The batch in the topic's codec. Records are taken over unless their offset deltas are off."""
    if not in_order:
        data = _renumbered(batch)
    attributes = target | batch.attributes & (TRANSACTIONAL_FLAG | CONTROL_FLAG)
    if rules.timestamp_type == LOG_APPEND_TIME:
        attributes |= TIMESTAMP_TYPE_FLAG
    fields = BatchFields(
        base_offset=batch.base_offset,
        last_offset_delta=batch.count - 1,
        leader_epoch=batch.leader_epoch,
        attributes=attributes,
        base_timestamp=batch.base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        record_count=batch.count,
    )
    return Batch(memoryview(bytearray(assemble(fields, compress(target, data, rules.level)))))


def _renumbered(batch: Batch) -> bytes:
    """The records' bytes with offset deltas that count from 0."""
    data = record_bytes(batch)
    out = bytearray()
    for index, span in enumerate(iter_spans(data, batch.count)):
        _, body = read_varint(data, span.start)
        _, key_at = read_varint(data, span.offset_position)
        record = data[body : span.offset_position] + encode_varint(index) + data[key_at : span.end]
        out += encode_varint(len(record))
        out += record
    return bytes(out)
