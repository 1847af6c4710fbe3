"""Records one by one, lazily: for consumers, tools and tests. The broker's own paths do not come here."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from headrace.ports import BytesLike
from headrace.records.batch import Batch, batches
from headrace.records.compression import DECOMPRESSED_MAX, decompress
from headrace.records.errors import MalformedRecords
from headrace.records.varint import InvalidVarint, read_varint, read_varlong, wrap_long

Header = tuple[str, bytes | None]

_PADDING: Final = bytes(16)
# Set bits of a raw varint that is negative or longer than two bytes.
_NOT_SHORT_AND_EVEN: Final = ~0x3FFE


class Record(NamedTuple):
    """One record with its absolute offset and timestamp."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[Header]


def record_bytes(batch: Batch, limit: int = DECOMPRESSED_MAX) -> bytes:
    """The batch's records as they were before compression."""
    return bytes(decompress(batch.compression, batch.payload, limit))


def read_records(batch: Batch, limit: int = DECOMPRESSED_MAX) -> Iterator[Record]:
    """Each record in turn; MalformedRecords at the first that does not parse."""
    if batch.count < 0:
        raise MalformedRecords(f"Found invalid record count {batch.count} in magic v{batch.magic} batch")
    if batch.count == 0:
        return
    # The padding lets short varints be read ahead without asking each time whether they are there.
    data = record_bytes(batch, limit)
    size = len(data)
    data += _PADDING
    base_offset, base_timestamp = batch.base_offset, batch.base_timestamp
    append_time = batch.max_timestamp if batch.timestamp_type else None
    start = 0
    for _ in range(batch.count):
        # Records whose varints are short and that have no headers are read in place, raw varints being twice
        # what they say or odd where that is negative; anything else is left to `_read_record`.
        length = data[start]
        position = start + 2
        if length >= 0x80:
            length += (data[start + 1] << 7) - 0x80
            position = start + 3
        end = position - 1 + (length >> 1)
        delta, offset, key = data[position : position + 3]
        position += 3
        if offset >= 0x80:
            offset += (key << 7) - 0x80
            key = data[position]
            position += 1
        content = position + (key >> 1)
        if content + 1 < end <= size and not (delta | key | offset >> 14 << 7 | length >> 14 << 7) & 0x80:
            value = data[content]
            if value >= 0x80:
                value += (data[content + 1] << 7) - 0x80
                content += 1
            content += 1
            if (
                content + (value >> 1) + 1 == end
                and not data[end - 1]
                and not (length | delta | offset) & 1
                and (not key & 1 or key == 1)
                and (not value & _NOT_SHORT_AND_EVEN or value == 1)
            ):
                yield Record(
                    base_offset + (offset >> 1),
                    base_timestamp + (delta >> 1) if append_time is None else append_time,
                    data[position : position + (key >> 1)] if key != 1 else None,
                    data[content : end - 1] if value != 1 else None,
                    [],
                )
                start = end
                continue
        try:
            start, record = _read_record(data, size, start, base_offset, base_timestamp, append_time)
        except (IndexError, InvalidVarint):
            raise MalformedRecords(f"Found invalid record structure at byte {start}") from None
        yield record
    if start != size:
        raise MalformedRecords("Incorrect declared batch size, records still remaining in file")


def read_all(buffer: BytesLike) -> Iterator[Record]:
    """Every record of every complete batch in `buffer`."""
    for batch in batches(buffer):
        yield from read_records(batch)


def _read_record(
    data: bytes, size: int, position: int, base_offset: int, base_timestamp: int, append_time: int | None
) -> tuple[int, Record]:
    length, position = read_varint(data, position)
    end = position + length
    if length < 0 or end > size:
        raise MalformedRecords(
            f"Invalid record size: expected {length} bytes in record payload, "
            f"but instead the buffer has only {size - position} remaining bytes."
        )
    timestamp_delta, position = read_varlong(data, position + 1)
    offset_delta, position = read_varint(data, position)
    key, position = _read_bytes(data, position)
    value, position = _read_bytes(data, position)
    count, position = read_varint(data, position)
    headers: list[Header] = []
    if count:
        position = _read_headers(data, position, count, headers)
    if position != end:
        raise MalformedRecords(
            f"Invalid record size: expected to read {length} bytes in record payload, "
            f"but instead read {position - end + length}"
        )
    timestamp = wrap_long(base_timestamp + timestamp_delta) if append_time is None else append_time
    return end, Record(base_offset + offset_delta, timestamp, key, value, headers)


def _read_bytes(data: bytes, position: int) -> tuple[bytes | None, int]:
    length, position = read_varint(data, position)
    if length < 0:
        return None, position
    end = position + length
    if end > len(data):
        raise MalformedRecords("Found invalid record structure: a field is longer than what is left")
    return data[position:end], end


def _read_headers(data: bytes, position: int, count: int, headers: list[Header]) -> int:
    if count < 0 or count > len(data) - position:
        raise MalformedRecords(f"Found invalid number of record headers {count}")
    for _ in range(count):
        key, position = _read_bytes(data, position)
        if key is None:
            raise MalformedRecords("Invalid negative header key size")
        value, position = _read_bytes(data, position)
        headers.append((key.decode("utf-8", "replace"), value))
    return position
