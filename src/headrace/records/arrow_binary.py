"""Arrow columns of byte strings that lie in one byte array, without touching them one by one.

Every position and size must have been checked: what is built here is handed to native code as it is.
"""

from typing import Final

import numpy as np
import pyarrow as pa

from headrace.records.arrow_varints import Bytes, Longs

_INLINE_MAX: Final = 12
_PREFIX_SIZE: Final = 4


def binary_pair(
    data: Bytes, first_start: Longs, first_size: Longs, second_start: Longs, second_size: Longs
) -> tuple[pa.Array, pa.Array]:
    """Two `binary` columns whose entries alternate in `data`, in ascending order; a size below 0 is null.

    The entries and the gaps between them are one big binary array over `data`, which costs nothing; picking
    every fourth of its elements is then one native copy per column."""
    count = first_start.size
    if count == 0:
        return pa.array([], pa.binary()), pa.array([], pa.binary())
    edges = np.empty((count, 4), np.int32)
    edges[:, 0] = first_start
    edges[:, 1] = first_start + np.maximum(first_size, 0)
    edges[:, 2] = second_start
    edges[:, 3] = second_start + np.maximum(second_size, 0)
    pieces = pa.Array.from_buffers(
        pa.binary(), 4 * count - 1, [None, pa.py_buffer(edges), pa.py_buffer(data)], null_count=0
    )
    return _every_fourth(pieces, 0, first_size), _every_fourth(pieces, 2, second_size)


def _every_fourth(pieces: pa.Array, start: int, sizes: Longs) -> pa.Array:
    if sizes.max() < 0:
        return pa.nulls(sizes.size, pa.binary())
    indices = np.arange(start, start + 4 * sizes.size, 4, dtype=np.int32)
    null = sizes < 0
    return pieces.take(pa.array(indices, mask=null if null.any() else None))


def binary_view(data: Bytes, start: Longs, size: Longs) -> pa.Array:
    """A `binary_view` column whose longer entries stay where they are in `data`; a size below 0 is null."""
    null = size < 0
    views = np.zeros((start.size, 4), np.int32)
    views[:, 0] = np.maximum(size, 0)
    by_reference = size > _INLINE_MAX
    inline = np.flatnonzero(~by_reference & (size > 0))
    _inline(views, data, inline, start[inline], size[inline])
    distant = np.flatnonzero(by_reference)
    prefix = data.take(start[distant, np.newaxis] + np.arange(_PREFIX_SIZE))
    views[distant, 1] = prefix.view(np.int32)[:, 0]
    views[distant, 3] = start[distant]
    validity = pa.py_buffer(np.packbits(~null, bitorder="little")) if null.any() else None
    return pa.Array.from_buffers(
        pa.binary_view(), start.size, [validity, pa.py_buffer(views), pa.py_buffer(data)]
    )


def _inline(
    views: "np.ndarray[tuple[int, int], np.dtype[np.int32]]",
    data: Bytes,
    rows: Longs,
    start: Longs,
    size: Longs,
) -> None:
    """Copy the short entries into their views, padded with zeros."""
    columns = np.arange(_INLINE_MAX)
    inside = columns < size[:, np.newaxis]
    copied = data.take(start[:, np.newaxis] + columns, mode="clip") * inside
    views[rows, 1:] = copied.view(np.int32)


def text(column: pa.Array) -> pa.Array:
    """A `binary` column as `string`; bytes that are no UTF-8 become U+FFFD, as Kafka's clients do it."""
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        encoded = column.dictionary_encode()
        names = [name.decode("utf-8", "replace") for name in encoded.dictionary.to_pylist()]
        return pa.array(names, pa.string()).take(encoded.indices)
