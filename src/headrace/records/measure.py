"""Records of any shape, measured field by field. No rule is explained here."""

from typing import TypeAlias

from headrace.records.varint import InvalidVarint, read_varint, read_varlong

# Sound records in a row: how many, where they end, the range of their timestamp deltas.
# A plain tuple, because a named one costs as much to make as half a record to check.
Stretch: TypeAlias = tuple[int, int, int, int]


def measure(data: bytes, start: int, index: int, stop: int, *, keys_required: bool) -> Stretch:
    """Records from the one at `start`, whose offset delta is `index`, up to `stop` or an unsound one."""
    first = index
    low, high = 2**63, -(2**63)
    size = len(data)
    try:
        while index < stop:
            length, body = read_varint(data, start)
            delta, position = read_varlong(data, body + 1)
            offset, position = read_varint(data, position)
            key = data[position]
            if key < 0x80 and not key & 1:
                position += 1 + (key >> 1)
            else:
                key, position = read_varint(data, position)
                if key > 0:
                    position += key
            value, position = read_varint(data, position)
            if value > 0:
                position += value
            if data[position]:
                position = _after_headers(data, position)
            else:
                position += 1
            if position != body + length or position > size or offset != index or (keys_required and key < 0):
                break
            low, high = min(low, delta), max(high, delta)
            start = position
            index += 1
    except (IndexError, InvalidVarint):
        # The record does not parse; how exactly is not this module's business.
        pass
    return index - first, start, low, high


def _after_headers(data: bytes, position: int) -> int:
    """The position after the headers whose count is at `position`, or one that no record can end at."""
    headers, position = read_varint(data, position)
    if not 0 <= headers <= len(data) - position:
        return -1
    for _ in range(headers):
        length = data[position]
        if length < 0x80 and not length & 1:
            position += 1 + (length >> 1)
        else:
            length, position = read_varint(data, position)
            if length < 0:
                return -1
            position += length
        length = data[position]
        if length < 0x80 and not length & 1:
            position += 1 + (length >> 1)
        else:
            length, position = read_varint(data, position)
            if length > 0:
                position += length
    return position
