"""How control records are shown: transaction markers, and what the metadata quorum writes for itself."""

from dataclasses import dataclass
from struct import Struct

from headrace.cli.dump.java_text import java_json
from headrace.cli.dump.line import DumpError, Fields
from headrace.records.control import ControlType, control_type_of_key
from headrace.records.reader import Record

_KEY = Struct(">hh")
_MARKER = Struct(">hi")
# Kafka's tool puts a colon after the first of these only.
_QUORUM_LABELS = {
    ControlType.LEADER_CHANGE: ("LeaderChange:", "LeaderChangeMessage"),
    ControlType.SNAPSHOT_HEADER: ("SnapshotHeader", "SnapshotHeaderRecord"),
    ControlType.SNAPSHOT_FOOTER: ("SnapshotFooter", "SnapshotFooterRecord"),
    ControlType.KRAFT_VERSION: ("KRaftVersion", "KRaftVersionRecord"),
    ControlType.KRAFT_VOTERS: ("KRaftVoters", "VotersRecord"),
}


@dataclass(frozen=True, slots=True)
class ShownControl:
    """A control record's type and what it carries."""

    type: ControlType
    type_id: int
    coordinator_epoch: int | None = None
    data: Fields | None = None

    def text(self) -> str:
        if self.coordinator_epoch is not None:
            return f"endTxnMarker: {self.type.name} coordinatorEpoch: {self.coordinator_epoch}"
        if self.data is not None:
            return f"{_QUORUM_LABELS[self.type][0]} {java_json(self.data)}"
        return f"controlType: {self.type.name}({self.type_id})"

    def fields(self) -> Fields:
        found: Fields = {"type": self.type.name, "typeId": self.type_id}
        if self.coordinator_epoch is not None:
            found["coordinatorEpoch"] = self.coordinator_epoch
        if self.data is not None:
            found["data"] = self.data
        return found


def show_control(record: Record) -> ShownControl:
    """What a control record says."""
    kind = control_type_of_key(record.key)
    type_id: int = _KEY.unpack_from(record.key or b"")[1]
    if kind in (ControlType.ABORT, ControlType.COMMIT):
        if record.value is None or len(record.value) < _MARKER.size:
            raise DumpError(f"the transaction marker at offset {record.offset} is cut short")
        return ShownControl(kind, type_id, coordinator_epoch=_MARKER.unpack_from(record.value)[1])
    if kind in _QUORUM_LABELS:
        return ShownControl(kind, type_id, data=_quorum_record(kind, record.value or b""))
    return ShownControl(kind, type_id)


def _quorum_record(kind: ControlType, value: bytes) -> Fields:
    """A record of the quorum; its schemas are loaded only where one is met."""
    from headrace.cli.dump.message_json import message_json
    from headrace.protocol.codec import decode
    from headrace.protocol.disk_records import control_records

    message = decode(getattr(control_records, _QUORUM_LABELS[kind][1]), 0, value)
    return message_json(message, message.version)
