"""Every rule for the records of a batch, in Kafka's order and with Kafka's words; slow, and asked rarely.

The records' structure comes first: the first record that does not parse ends the inspection. Records that
parse but break a rule of the topic are collected, so that a producer learns of all of them at once.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from headrace.errors import ErrorCode
from headrace.records.batch import Batch
from headrace.records.errors import MalformedRecords
from headrace.records.rules import CREATE_TIME, RecordError, RecordsRefused, ValidationRules
from headrace.records.varint import InvalidVarint, read_varint, read_varlong
from headrace.types import NO_TIMESTAMP

_WORD: Final = 2**64
_SIGN: Final = 2**63
_SHOWN_MAX: Final = 3


class Inspection(NamedTuple):
    """What was found out about sound records."""

    max_timestamp: int
    offsets_in_order: bool


class ParsedRecord(NamedTuple):
    """The fields of a record that rules are about; sizes are negative for null."""

    offset_delta: int
    timestamp_delta: int
    key_size: int
    value_size: int


def inspect(batch: Batch, data: bytes, rules: ValidationRules, now_ms: int, *, in_place: bool) -> Inspection:
    """Check the uncompressed records of `batch`; RecordsRefused or MalformedRecords if they are bad."""
    errors: list[tuple[ErrorCode, RecordError]] = []
    max_timestamp = NO_TIMESTAMP
    in_order = True
    compressed = batch.compression != 0
    for index, parsed in enumerate(parse_records(data, batch, compressed=compressed)):
        timestamp = batch.max_timestamp
        if not batch.timestamp_type:
            timestamp = _wrapped(batch.base_timestamp + parsed.timestamp_delta)
        kind = "PartialDefaultRecord" if compressed and in_place else "DefaultRecord"
        error = _record_error(batch, parsed, timestamp, rules, now_ms, kind)
        if error is not None:
            errors.append((error[0], RecordError(index, error[1])))
        in_order = in_order and parsed.offset_delta == index
        max_timestamp = max(max_timestamp, timestamp)
    if errors:
        raise _refusal(errors)
    return Inspection(max_timestamp, in_order)


def _refusal(errors: list[tuple[ErrorCode, RecordError]]) -> RecordsRefused:
    records = tuple(error for _, error in errors)
    if any(code == ErrorCode.INVALID_TIMESTAMP for code, _ in errors):
        message = "One or more records have been rejected due to invalid timestamp"
        return RecordsRefused(ErrorCode.INVALID_TIMESTAMP, message, records)
    shown = ", ".join(
        f"RecordError(batchIndex={error.batch_index}, message='{error.message}')"
        for error in records[:_SHOWN_MAX]
    )
    message = (
        f"One or more records have been rejected due to {len(records)} record errors in total, "
        f"and only showing the first three errors at most: [{shown}]"
    )
    return RecordsRefused(ErrorCode.INVALID_RECORD, message, records)


def _record_error(
    batch: Batch, parsed: ParsedRecord, timestamp: int, rules: ValidationRules, now_ms: int, kind: str
) -> tuple[ErrorCode, str] | None:
    if rules.compact and parsed.key_size < 0:
        return (
            ErrorCode.INVALID_RECORD,
            f"Compacted topic cannot accept message without key in topic partition {rules.topic_partition}",
        )
    if rules.timestamp_type == CREATE_TIME and timestamp != NO_TIMESTAMP:
        age = _wrapped(now_ms - timestamp)
        if age > rules.before_max_ms or _wrapped(-age) > rules.after_max_ms:
            earliest, latest = _wrapped(now_ms - rules.before_max_ms), _wrapped(now_ms + rules.after_max_ms)
            return (
                ErrorCode.INVALID_TIMESTAMP,
                f"Timestamp {timestamp} of message with offset {batch.base_offset + parsed.offset_delta} "
                f"is out of range. The timestamp should be within [{earliest}, {latest}]",
            )
    elif batch.timestamp_type:
        described = (
            f"{kind}(offset={batch.base_offset + parsed.offset_delta}, timestamp={timestamp}, "
            f"key={max(parsed.key_size, 0)} bytes, value={max(parsed.value_size, 0)} bytes)"
        )
        return (
            ErrorCode.INVALID_TIMESTAMP,
            f"Invalid timestamp type in message {described}. "
            "Producer should not set timestamp type to LogAppendTime.",
        )
    return None


def _wrapped(value: int) -> int:
    """`value` as a signed 64-bit word, which is what Kafka computes with."""
    return (value + _SIGN) % _WORD - _SIGN


def parse_records(data: bytes, batch: Batch, *, compressed: bool) -> Iterator[ParsedRecord]:
    """Each record's fields; MalformedRecords where one does not parse or something is left over."""
    if batch.count < 0:
        raise MalformedRecords(f"Found invalid record count {batch.count} in magic v{batch.magic} batch")
    if batch.count == 0:
        return
    position = 0
    for _ in range(batch.count):
        try:
            length, body = read_varint(data, position)
        except IndexError:
            raise MalformedRecords("Incorrect declared batch size, premature EOF reached") from None
        except InvalidVarint as failure:
            # Kafka has no answer of its own to this in records that are not compressed.
            if compressed:
                raise MalformedRecords("Incorrect declared batch size, premature EOF reached") from None
            raise RecordsRefused(ErrorCode.UNKNOWN_SERVER_ERROR, f"Record length: {failure}") from None
        if length > len(data) - body:
            raise MalformedRecords(
                f"Invalid record size: expected {length} bytes in record payload, "
                f"but instead the buffer has only {len(data) - body} remaining bytes."
            )
        try:
            end, parsed = _parse_body(data, body)
        except (IndexError, InvalidVarint):
            raise MalformedRecords("Found invalid record structure") from None
        if end != body + length:
            raise MalformedRecords(
                f"Invalid record size: expected to read {length} bytes in record payload, "
                f"but instead read {end - body}"
            )
        yield parsed
        position = end
    if position != len(data):
        raise MalformedRecords("Incorrect declared batch size, records still remaining in file")


def _parse_body(data: bytes, body: int) -> tuple[int, ParsedRecord]:
    """A record's fields and where its last header ends."""
    timestamp_delta, position = read_varlong(data, body + 1)
    offset_delta, position = read_varint(data, position)
    key_size, position = read_varint(data, position)
    position = _skip(data, position, key_size)
    value_size, position = read_varint(data, position)
    position = _skip(data, position, value_size)
    headers, position = read_varint(data, position)
    if headers < 0:
        raise MalformedRecords(f"Found invalid number of record headers {headers}")
    if headers > len(data) - position:
        raise MalformedRecords(
            f"Found invalid number of record headers. {headers} is larger than the remaining size "
            "of the buffer"
        )
    for _ in range(headers):
        size, position = read_varint(data, position)
        if size < 0:
            raise MalformedRecords(f"Invalid negative header key size {size}")
        position = _skip(data, position, size)
        size, position = read_varint(data, position)
        position = _skip(data, position, size)
    return position, ParsedRecord(offset_delta, timestamp_delta, key_size, value_size)


def _skip(data: bytes, position: int, size: int) -> int:
    if size > len(data) - position:
        raise IndexError
    return position + size if size > 0 else position
