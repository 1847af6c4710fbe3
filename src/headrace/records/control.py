"""Control records: what brokers and the metadata quorum write into a log for themselves.

A control batch's first record tells its type in the key. The end-of-transaction marker is read and built here
without the message codec; the quorum's records are in `quorum_control`.
"""

from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

from headrace.records.batch import Batch
from headrace.records.builder import NewRecord, build_batch
from headrace.records.errors import MalformedRecords
from headrace.records.reader import Record, read_records

_KEY: Final = Struct(">hh")
_END_TRANSACTION: Final = Struct(">hi")
_KEY_VERSION: Final = 0
_END_TRANSACTION_VERSION: Final = 0


class ControlType(IntEnum):
    """What a control record says. UNKNOWN stands for types of later versions, which readers pass over."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


_TYPE_LAST: Final = ControlType.KRAFT_VOTERS


class EndTransactionMarker(NamedTuple):
    """The end of a producer's transaction in one partition."""

    type: ControlType
    coordinator_epoch: int


def control_type(batch: Batch) -> ControlType:
    """The type of a control batch, told by its first record."""
    return control_type_of_key(first_record(batch).key)


def control_type_of_key(key: bytes | None) -> ControlType:
    """The type that a control record's key names."""
    if key is None or len(key) < _KEY.size:
        raise MalformedRecords(
            f"Invalid value size found for control record key. Must have at least {_KEY.size} bytes, "
            f"but found only {len(key or b'')}"
        )
    version, code = _KEY.unpack_from(key)
    if version < 0:
        raise MalformedRecords(
            f"Invalid version found for control record: {version}. May indicate data corruption"
        )
    return ControlType(code) if 0 <= code <= _TYPE_LAST else ControlType.UNKNOWN


def control_key(kind: ControlType) -> bytes:
    """The key of a control record."""
    if kind == ControlType.UNKNOWN:
        raise ValueError("Cannot serialize UNKNOWN control record type")
    return _KEY.pack(_KEY_VERSION, kind)


def read_end_transaction_marker(batch: Batch) -> EndTransactionMarker:
    """The marker in a commit or abort batch."""
    record = first_record(batch)
    kind = control_type_of_key(record.key)
    if kind not in (ControlType.ABORT, ControlType.COMMIT):
        raise MalformedRecords(f"Invalid control record type for end transaction marker {kind.name}")
    if record.value is None or len(record.value) < _END_TRANSACTION.size:
        raise MalformedRecords(
            f"End transaction marker has {len(record.value or b'')} bytes, {_END_TRANSACTION.size} are due"
        )
    version, coordinator_epoch = _END_TRANSACTION.unpack_from(record.value)
    if version < 0:
        raise MalformedRecords(
            f"Invalid version found for end transaction marker: {version}. May indicate data corruption"
        )
    return EndTransactionMarker(kind, coordinator_epoch)


def build_end_transaction_marker(
    kind: ControlType,
    *,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytes:
    """The control batch that commits or aborts a producer's transaction."""
    if kind not in (ControlType.ABORT, ControlType.COMMIT):
        raise ValueError(f"Invalid control record type for end transaction marker {kind.name}")
    value = _END_TRANSACTION.pack(_END_TRANSACTION_VERSION, coordinator_epoch)
    return build_batch(
        [NewRecord(timestamp, control_key(kind), value)],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
        leader_epoch=leader_epoch,
    )


def first_record(batch: Batch) -> Record:
    """The first record of a control batch; an empty one has no type."""
    if not batch.is_control:
        raise MalformedRecords(f"Batch at offset {batch.base_offset} is not a control batch")
    for record in read_records(batch):
        return record
    raise MalformedRecords(f"Control batch at offset {batch.base_offset} has no records")
