"""The shape of a record: where its lengths are and what they say. Records of equal shape differ in nothing
but their attributes, deltas and contents."""

from typing import Final

from headrace.records.varint import InvalidVarint, encode_varint, read_varint

_REMEMBERED_MAX: Final = 64


class Shape:
    """Places are relative to the record's start; `lengths` has every byte of one, by its place.

    `wider` is the shape once offset deltas take a byte more, or None if there is none or it is not known yet.
    """

    __slots__ = ("is_widened", "key_at", "lengths", "offset_at", "size", "timestamp_at", "wider")

    def __init__(
        self, size: int, lengths: list[tuple[int, bytes]], timestamp_at: int, offset_at: int, key_at: int
    ) -> None:
        self.size = size
        self.lengths = lengths
        self.timestamp_at = timestamp_at
        self.offset_at = offset_at
        self.key_at = key_at
        self.wider: Shape | None = None
        self.is_widened = False


class ShapeMemory:
    """The shapes of records seen before, by the first bytes of one: a producer's next batch has them again.

    What is remembered is a guess that saves looking; every record is still checked against it.
    """

    __slots__ = ("_shapes",)

    def __init__(self) -> None:
        self._shapes: dict[bytes, Shape] = {}

    def recall(self, beginning: bytes) -> Shape | None:
        return self._shapes.get(beginning)

    def remember(self, beginning: bytes, shape: Shape) -> None:
        if len(self._shapes) >= _REMEMBERED_MAX:
            self._shapes.clear()
        self._shapes[beginning] = shape


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
    if not shape.is_widened:
        shape.wider = _wider(shape)
        shape.is_widened = True
    return shape.wider


def _wider(shape: Shape) -> Shape | None:
    prefix = shape.timestamp_at - 1
    length = encode_varint(shape.size - prefix + 1)
    if len(length) != prefix:
        return None
    lengths = [(place, length[place : place + 1]) for place in range(prefix)]
    lengths += [(place + 1, byte) for place, byte in shape.lengths[prefix:]]
    return Shape(shape.size + 1, lengths, shape.timestamp_at, shape.offset_at, shape.key_at + 1)
