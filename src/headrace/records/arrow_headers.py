"""The headers of all records at once, as an Arrow column.

Each round decodes one header of every record that has that many, so there are as many rounds as the longest
list is long; once only a few records are left, their headers are read one after the other.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.records.arrow_binary import binary_pair, text
from headrace.records.arrow_fields import Fields
from headrace.records.arrow_varints import Bytes, Longs, read_varints
from headrace.records.errors import MalformedRecords
from headrace.records.varint import InvalidVarint, read_varint

HEADER: Final = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
HEADERS: Final = pa.list_(HEADER)

_HEADER_SIZE_MIN: Final = 2
# A round costs as much as reading about this many headers one after the other.
_ROUND_MIN: Final = 32


@dataclass(slots=True)
class _Found:
    """One entry per header, those of the first record first."""

    key_start: Longs
    key_size: Longs
    value_start: Longs
    value_size: Longs


@dataclass(slots=True)
class _Readers:
    """One entry per record with headers left: the record, where its next header is, the place in `_Found`."""

    record: Longs
    position: Longs
    slot: Longs
    left: Longs

    def keep(self, wanted: NDArray[np.bool_]) -> None:
        self.record = self.record[wanted]
        self.position = self.position[wanted]
        self.slot = self.slot[wanted]
        self.left = self.left[wanted]


def headers_column(data: Bytes, fields: Fields) -> pa.Array:
    """The `headers` column; MalformedRecords naming the first record whose headers do not fill it."""
    edges = np.zeros(fields.header_count.size + 1, np.int64)
    records = np.flatnonzero(fields.header_count)
    if records.size == 0:
        return _column(edges, pa.array([], HEADER))
    crowded = fields.header_count * _HEADER_SIZE_MIN > fields.end - fields.headers_start
    if crowded.any():
        raise _malformed(fields, int(crowded.argmax()))
    np.cumsum(fields.header_count, out=edges[1:])
    readers = _Readers(records, fields.headers_start[records], edges[records], fields.header_count[records])
    found = _Found(*(np.empty(edges[-1], np.int64) for _ in range(4)))
    while readers.record.size >= _ROUND_MIN:
        _read_round(data, fields, readers, found)
    if readers.record.size:
        _read_rest(data, fields, readers, found)
    keys, values = binary_pair(data, found.key_start, found.key_size, found.value_start, found.value_size)
    return _column(edges, pa.StructArray.from_arrays([text(keys), values], fields=list(HEADER)))


def _column(edges: Longs, entries: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(edges.astype(np.int32)), entries, type=HEADERS)


def _read_round(data: Bytes, fields: Fields, readers: _Readers, found: _Found) -> None:
    """The next header of every record that has one left."""
    key_size, key_start = read_varints(data, readers.position)
    value_size, value_start = read_varints(data, key_start + np.maximum(key_size, 0))
    readers.position = value_start + np.maximum(value_size, 0)
    ends = fields.end[readers.record]
    last = readers.left == 1
    sound = (key_size >= 0) & np.where(last, readers.position == ends, readers.position < ends)
    if not sound.all():
        raise _malformed(fields, int(readers.record[sound.argmin()]))
    found.key_start[readers.slot] = key_start
    found.key_size[readers.slot] = key_size
    found.value_start[readers.slot] = value_start
    found.value_size[readers.slot] = value_size
    readers.slot += 1
    readers.left -= 1
    if last.any():
        readers.keep(~last)


def _read_rest(data: Bytes, fields: Fields, readers: _Readers, found: _Found) -> None:
    """All headers that are left of a few records."""
    view = data.data
    for record, position, slot, left in zip(
        readers.record.tolist(),
        readers.position.tolist(),
        readers.slot.tolist(),
        readers.left.tolist(),
        strict=True,
    ):
        end = _read_list(view[: int(fields.end[record])], position, slice(slot, slot + left), found)
        if end != fields.end[record]:
            raise _malformed(fields, record)


def _read_list(view: memoryview, position: int, slots: slice, found: _Found) -> int:
    """The headers of one record, in turn; the position after them, or -1 when they cannot be read."""
    try:
        for slot in range(slots.start, slots.stop):
            key_size, key_start = read_varint(view, position)
            if key_size < 0:
                return -1
            value_size, value_start = read_varint(view, key_start + key_size)
            position = value_start + max(value_size, 0)
            found.key_start[slot] = key_start
            found.key_size[slot] = key_size
            found.value_start[slot] = value_start
            found.value_size[slot] = value_size
    except (IndexError, InvalidVarint):
        return -1
    return position


def _malformed(fields: Fields, record: int) -> MalformedRecords:
    return MalformedRecords(
        f"Record at offset {fields.offset[record]} is malformed: its headers do not fill it"
    )
