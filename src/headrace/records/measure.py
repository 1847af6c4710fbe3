"""One record of any shape, measured: where it ends and where its parts lie. No rule is explained here."""

from typing import NamedTuple

from headrace.records.varint import InvalidVarint, read_varint, read_varlong


class Shape(NamedTuple):
    """A sound record's size and parts. `fixed` are the places, relative to its start, that hold lengths."""

    size: int
    fixed: list[int]
    timestamp_at: int
    offset_at: int
    key_at: int


class Stretch(NamedTuple):
    """Sound records in a row: how many, the edges of the last one, the range of timestamp deltas."""

    records: int
    last_start: int
    end: int
    low: int
    high: int


def measure(data: bytes, start: int, index: int, *, keys_required: bool) -> Stretch | None:
    """The record at `start`, or None if it is not sound or its offset delta is not `index`."""
    try:
        length, body = read_varint(data, start)
        delta, position = read_varlong(data, body + 1)
        offset, position = read_varint(data, position)
        key, position = read_varint(data, position)
        value, position = read_varint(data, position + key if key > 0 else position)
        if value > 0:
            position += value
        headers = data[position]
        position += 1
        if headers:
            position = _after_headers(data, position - 1)
    except (IndexError, InvalidVarint):
        return None
    end = body + length
    if position != end or end > len(data) or offset != index or (keys_required and key < 0):
        return None
    return Stretch(1, start, end, delta, delta)


def _after_headers(data: bytes, position: int) -> int:
    """The position after the headers whose count is at `position`, or one that no record can end at."""
    headers, position = read_varint(data, position)
    if not 0 <= headers <= len(data) - position:
        return -1
    for _ in range(headers):
        name = data[position]
        if name < 0x80 and not name & 1:
            position += 1 + (name >> 1)
        else:
            name, position = read_varint(data, position)
            if name < 0:
                return -1
            position += name
        value = data[position]
        if value < 0x80 and not value & 1:
            position += 1 + (value >> 1)
        else:
            value, position = read_varint(data, position)
            if value > 0:
                position += value
    return position


def shape_of(data: bytes, start: int, end: int) -> Shape:
    """The shape of a record that is known to be sound."""
    _, body = read_varint(data, start)
    _, offset_at = read_varlong(data, body + 1)
    _, key_at = read_varint(data, offset_at)
    fixed = [*range(body - start)]
    position = key_at
    for _ in range(2):
        length, after = read_varint(data, position)
        fixed += range(position - start, after - start)
        position = after + length if length > 0 else after
    headers, after = read_varint(data, position)
    fixed += range(position - start, after - start)
    position = after
    for _ in range(2 * headers):
        length, after = read_varint(data, position)
        fixed += range(position - start, after - start)
        position = after + length if length > 0 else after
    return Shape(end - start, fixed, body + 1 - start, offset_at - start, key_at - start)
