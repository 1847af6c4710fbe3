"""Producer snapshot files: the state of every producer at one offset, in Kafka's format.

A snapshot is read whole and trusted only if its checksum is right; a bad one is as good as none, since the
log itself can be replayed."""

import struct
from collections.abc import Iterable
from struct import Struct

from headrace.errors import HeadraceError
from headrace.log.producer_entry import ProducerEntry, RememberedBatch
from headrace.records.checksum import crc32c

VERSION = 1
_PREFIX = Struct(">hI")
_COUNT = Struct(">i")
_ENTRY = Struct(">qhiqiqiq")


class CorruptSnapshot(HeadraceError):
    """A producer snapshot that can't be trusted."""


def encode_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    """The bytes of a snapshot file."""
    packed = [
        _ENTRY.pack(
            entry.producer_id,
            entry.epoch,
            entry.last_sequence,
            entry.last_data_offset,
            entry.last_offset_delta,
            entry.last_timestamp,
            entry.coordinator_epoch,
            -1 if entry.transaction_first_offset is None else entry.transaction_first_offset,
        )
        for entry in entries
    ]
    body = _COUNT.pack(len(packed)) + b"".join(packed)
    return _PREFIX.pack(VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes, path: str = "snapshot") -> list[ProducerEntry]:
    """The producers in a snapshot file's bytes; `CorruptSnapshot` if they can't be trusted."""
    try:
        version, stored_crc = _PREFIX.unpack_from(data)
        (count,) = _COUNT.unpack_from(data, _PREFIX.size)
    except struct.error as error:
        raise CorruptSnapshot(f"{path} is too short for a producer snapshot: {len(data)} bytes") from error
    if version != VERSION:
        raise CorruptSnapshot(f"{path} has the unknown version {version}")
    body = memoryview(data)[_PREFIX.size :]
    computed_crc = crc32c(body)
    if stored_crc != computed_crc:
        raise CorruptSnapshot(f"{path} has the checksum {stored_crc}, its content {computed_crc}")
    if count < 0 or len(body) < _COUNT.size + count * _ENTRY.size:
        raise CorruptSnapshot(f"{path} announces {count} producers in {len(data)} bytes")
    rows = body[_COUNT.size : _COUNT.size + count * _ENTRY.size]
    return [_entry_from_row(row) for row in _ENTRY.iter_unpack(rows)]


def _entry_from_row(row: tuple[int, ...]) -> ProducerEntry:
    producer_id, epoch, last_sequence, last_offset, delta, timestamp, coordinator_epoch, first_offset = row
    entry = ProducerEntry(
        producer_id, epoch, coordinator_epoch, timestamp, first_offset if first_offset >= 0 else None
    )
    if last_offset >= 0:
        entry.batches.append(RememberedBatch(last_sequence, last_offset, delta, timestamp))
    return entry
