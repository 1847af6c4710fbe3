"""Control records of the metadata quorum: leader changes, snapshot edges, its version and its voters."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from headrace.protocol.codec import decode, encode
from headrace.protocol.disk_records.control_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from headrace.records.batch import Batch
from headrace.records.builder import NewRecord, build_batch
from headrace.records.control import ControlType, control_key, control_type_of_key
from headrace.records.errors import MalformedRecords
from headrace.records.reader import read_records

QuorumMessage: TypeAlias = (
    LeaderChangeMessage | SnapshotHeaderRecord | SnapshotFooterRecord | KRaftVersionRecord | VotersRecord
)

_CLASS_OF_TYPE: Final[dict[ControlType, type[QuorumMessage]]] = {
    ControlType.LEADER_CHANGE: LeaderChangeMessage,
    ControlType.SNAPSHOT_HEADER: SnapshotHeaderRecord,
    ControlType.SNAPSHOT_FOOTER: SnapshotFooterRecord,
    ControlType.KRAFT_VERSION: KRaftVersionRecord,
    ControlType.KRAFT_VOTERS: VotersRecord,
}
_TYPE_OF_CLASS: Final = {cls: kind for kind, cls in _CLASS_OF_TYPE.items()}
# The version that 4.3.1 writes and reads all of these in, whatever the schemas know beyond it.
_VERSION: Final = 0


class QuorumRecord(NamedTuple):
    """One control record of the quorum, with its offset and timestamp."""

    offset: int
    timestamp: int
    message: QuorumMessage


def build_quorum_batch(
    messages: Sequence[QuorumMessage], *, timestamp: int, leader_epoch: int, base_offset: int = 0
) -> bytes:
    """A control batch that holds these messages."""
    return build_batch(
        [
            NewRecord(timestamp, control_key(_TYPE_OF_CLASS[type(message)]), encode(message, _VERSION))
            for message in messages
        ],
        base_offset=base_offset,
        control=True,
        leader_epoch=leader_epoch,
    )


def read_quorum_records(batch: Batch) -> Iterator[QuorumRecord]:
    """The quorum's records in a control batch; types of later versions are passed over."""
    if not batch.is_control:
        raise MalformedRecords(f"Batch at offset {batch.base_offset} is not a control batch")
    for record in read_records(batch):
        cls = _CLASS_OF_TYPE.get(control_type_of_key(record.key))
        if cls is not None:
            if record.value is None:
                raise MalformedRecords(f"Control record at offset {record.offset} has no value")
            yield QuorumRecord(record.offset, record.timestamp, decode(cls, _VERSION, record.value))
