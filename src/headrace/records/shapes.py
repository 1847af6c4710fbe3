"""The shape of a record: where its lengths are and what they say. Records of equal shape differ in nothing
but their attributes, deltas and contents."""

from typing import NamedTuple

from headrace.records.varint import InvalidVarint, encode_varint, read_varint


class Shape(NamedTuple):
    """Places are relative to the record's start; `lengths` has every byte of one, by its place."""

    size: int
    lengths: list[tuple[int, bytes]]
    timestamp_at: int
    offset_at: int
    key_at: int


def shape_at(data: bytes, start: int, *, keys_required: bool) -> Shape | None:
    """The shape of the record at `start`, or None if its lengths do not agree. Deltas are not looked at."""
    try:
        length, body = read_varint(data, start)
        offset_at = _after_varint(data, body + 1)
        key_at = _after_varint(data, offset_at)
        key, position = read_varint(data, key_at)
        places = [*range(start, body), *range(key_at, position)]
        value_at = position + key if key > 0 else position
        value, position = read_varint(data, value_at)
        places += range(value_at, position)
        headers_at = position + value if value > 0 else position
        places.append(headers_at)
        end = headers_at + 1
        if data[headers_at]:
            end = _after_headers(data, headers_at, places)
        if end != body + length or (keys_required and key < 0):
            return None
        lengths = [(place - start, data[place : place + 1]) for place in places]
    except (IndexError, InvalidVarint):
        return None
    return Shape(end - start, lengths, body + 1 - start, offset_at - start, key_at - start)


def _after_varint(data: bytes, position: int) -> int:
    while data[position] >= 0x80:
        position += 1
    return position + 1


def _after_headers(data: bytes, headers_at: int, places: list[int]) -> int:
    """The position after the headers, or one that no record can end at; their lengths' places are added."""
    headers, position = read_varint(data, headers_at)
    if not 0 <= headers <= len(data) - position:
        return -1
    places += range(headers_at + 1, position)
    for _ in range(headers):
        length, after = read_varint(data, position)
        if length < 0:
            return -1
        places += range(position, after)
        position = after + length
        length, after = read_varint(data, position)
        places += range(position, after)
        position = after + length if length > 0 else after
    return position


def widened(shape: Shape) -> Shape | None:
    """The shape once offset deltas take a byte more; None if the record's length would then take one too."""
    prefix = shape.timestamp_at - 1
    length = encode_varint(shape.size - prefix + 1)
    if len(length) != prefix:
        return None
    lengths = [(place, length[place : place + 1]) for place in range(prefix)]
    lengths += [(place + 1, byte) for place, byte in shape.lengths[prefix:]]
    return Shape(shape.size + 1, lengths, shape.timestamp_at, shape.offset_at, shape.key_at + 1)
