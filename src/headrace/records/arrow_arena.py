"""The records of many batches in one byte array, and where each of them begins and ends.

Uncompressed batches of one buffer are left where they are; as soon as one of them is compressed, all are
joined into a new array.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from headrace.ports import BytesLike
from headrace.records.arrow_boundaries import malformed, record_ends
from headrace.records.arrow_varints import Bytes, Longs
from headrace.records.batch import COMPRESSION_MASK, HEADER_SIZE, Batch
from headrace.records.compression import decompress
from headrace.records.errors import CorruptBatch, UndecompressableRecords

# Length, attributes, both deltas, key length, value length, header count: a byte each.
RECORD_SIZE_MIN: Final = 7

# Arrow's plain binary columns have 32-bit offsets.
ARENA_BYTES_MAX: Final = 2**31 - 1


class Payload(NamedTuple):
    """A batch, and its records if they had to be decompressed; None if they are in its buffer as they are."""

    batch: Batch
    decompressed: BytesLike | None
    size: int

    @property
    def records(self) -> BytesLike:
        return self.batch.payload if self.decompressed is None else self.decompressed


@dataclass(slots=True)
class Arena:
    """`data[starts[i]:ends[i]]` is record i; batch b has the next `counts[b]` of them."""

    data: Bytes
    batches: list[Batch]
    counts: Longs
    starts: Longs
    ends: Longs


def payloads(batches: Iterable[Batch]) -> Iterator[Payload]:
    """The batches that have records, one by one; a KafkaError where they cannot be right."""
    for batch in batches:
        if batch.count == 0:
            continue
        decompressed = _decompressed(batch) if batch.attributes & COMPRESSION_MASK else None
        size = batch.size - HEADER_SIZE if decompressed is None else len(decompressed)
        if not 0 < batch.count <= size // RECORD_SIZE_MIN:
            raise malformed(batch, f"{batch.count} records do not fit into {size} bytes")
        yield Payload(batch, decompressed, size)


def groups(found: Iterable[Payload], bytes_max: int) -> Iterator[list[Payload]]:
    """Runs of payloads of `bytes_max` bytes at most, or a single one that is larger."""
    group: list[Payload] = []
    total = 0
    for payload in found:
        size = HEADER_SIZE + payload.size
        if group and total + size > bytes_max:
            yield group
            group, total = [], 0
        group.append(payload)
        total += size
    if group:
        yield group


def lay_out(group: list[Payload]) -> Arena:
    """The arena of at least one payload; MalformedRecords where record lengths do not fill a batch."""
    batches = [payload.batch for payload in group]
    counts = np.array([batch.count for batch in batches], np.int64)
    source, begins, stops = _in_place(batches) if _share_buffer(group) else _joined(group)
    data = np.frombuffer(source, np.uint8)
    ends = record_ends(source, batches, begins, stops)
    starts = np.empty_like(ends)
    starts[1:] = ends[:-1]
    starts[np.cumsum(counts) - counts] = begins
    return Arena(data, batches, counts, starts, ends)


def _decompressed(batch: Batch) -> BytesLike:
    try:
        return decompress(batch.compression, batch.payload)
    except (UndecompressableRecords, CorruptBatch) as error:
        raise type(error)(f"Batch at offset {batch.base_offset} cannot be decompressed: {error}") from error


def _share_buffer(group: list[Payload]) -> bool:
    first, last = group[0].batch, group[-1].batch
    if last.position + last.size - first.position > ARENA_BYTES_MAX:
        return False
    reached = -1
    for batch, decompressed, _ in group:
        if decompressed is not None or batch.buffer is not first.buffer or batch.position <= reached:
            return False
        reached = batch.position
    return True


def _in_place(batches: list[Batch]) -> tuple[BytesLike, Longs, Longs]:
    first, last = batches[0], batches[-1]
    positions = np.array([batch.position for batch in batches], np.int64) - first.position
    sizes = np.array([batch.size for batch in batches], np.int64)
    view = first.buffer
    size = last.position + last.size - first.position
    source: BytesLike = view[first.position : first.position + size]
    if isinstance(view.obj, bytes) and view.nbytes == len(view.obj) == size:
        source = view.obj  # Walking over bytes is quicker than over a memoryview of them.
    return source, positions + HEADER_SIZE, positions + sizes


def _joined(group: list[Payload]) -> tuple[bytes, Longs, Longs]:
    sizes = np.array([payload.size for payload in group], np.int64)
    stops = np.cumsum(sizes)
    return b"".join([payload.records for payload in group]), stops - sizes, stops
