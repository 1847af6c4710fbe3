"""Topics and partitions as the metadata has them: plain values that records are turned into and back."""

from typing import Final, NamedTuple
from uuid import UUID

from headrace.metadata.ids import MIGRATING_DIRECTORY
from headrace.metadata.versions import MetadataVersion
from headrace.protocol.disk_records.cluster_metadata import PartitionChangeRecord, PartitionRecord

NO_LEADER: Final = -1
NO_LEADER_CHANGE: Final = -2
RECOVERED: Final = 0
RECOVERING: Final = 1
_NO_RECOVERY_CHANGE: Final = -1


class PartitionState(NamedTuple):
    """One partition: where its replicas are, which of them are in sync, and who leads."""

    replicas: tuple[int, ...]
    directories: tuple[UUID, ...]
    isr: tuple[int, ...]
    removing_replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    leader: int
    leader_recovery_state: int
    leader_epoch: int
    partition_epoch: int
    elr: tuple[int, ...]
    last_known_elr: tuple[int, ...]

    def directory_of(self, broker_id: int) -> UUID | None:
        """The directory that the replica of a broker is assigned to; None if it has no replica there."""
        try:
            return self.directories[self.replicas.index(broker_id)]
        except ValueError:
            return None

    def changed(self, record: PartitionChangeRecord) -> "PartitionState":
        """The partition after a change; naming a leader begins a new leader epoch, be it the same one."""
        replicas = self.replicas if record.replicas is None else tuple(record.replicas)
        directories = self.directories if record.directories is None else tuple(record.directories)
        leads_anew = record.leader != NO_LEADER_CHANGE
        recovery = record.leader_recovery_state
        return PartitionState(
            replicas,
            directories or (MIGRATING_DIRECTORY,) * len(replicas),
            self.isr if record.isr is None else tuple(record.isr),
            self.removing_replicas if record.removing_replicas is None else tuple(record.removing_replicas),
            self.adding_replicas if record.adding_replicas is None else tuple(record.adding_replicas),
            record.leader if leads_anew else self.leader,
            self.leader_recovery_state if recovery == _NO_RECOVERY_CHANGE else recovery,
            self.leader_epoch + 1 if leads_anew else self.leader_epoch,
            self.partition_epoch + 1,
            self.elr if record.eligible_leader_replicas is None else tuple(record.eligible_leader_replicas),
            self.last_known_elr if record.last_known_elr is None else tuple(record.last_known_elr),
        )

    def record(self, topic_id: UUID, index: int, version: MetadataVersion, *, elr: bool) -> PartitionRecord:
        """The record that says the same. Eligible leaders are only written where that feature is on."""
        return PartitionRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=list(self.replicas),
            isr=list(self.isr),
            removing_replicas=list(self.removing_replicas),
            adding_replicas=list(self.adding_replicas),
            leader=self.leader,
            leader_recovery_state=self.leader_recovery_state,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            directories=list(self.directories) if version.has_directories else [],
            eligible_leader_replicas=list(self.elr) if elr and self.elr else None,
            last_known_elr=list(self.last_known_elr) if elr and self.last_known_elr else None,
        )


def partition_of_record(record: PartitionRecord) -> PartitionState:
    """The partition that a record describes; older ones know nothing of directories."""
    replicas = tuple(record.replicas)
    return PartitionState(
        replicas,
        tuple(record.directories) or (MIGRATING_DIRECTORY,) * len(replicas),
        tuple(record.isr),
        tuple(record.removing_replicas),
        tuple(record.adding_replicas),
        record.leader,
        record.leader_recovery_state,
        record.leader_epoch,
        record.partition_epoch,
        tuple(record.eligible_leader_replicas or ()),
        tuple(record.last_known_elr or ()),
    )


class TopicState:
    """One topic and its partitions by index."""

    __slots__ = ("id", "name", "partitions")

    def __init__(
        self, name: str, topic_id: UUID, partitions: dict[int, PartitionState] | None = None
    ) -> None:
        self.name = name
        self.id = topic_id
        self.partitions = partitions if partitions is not None else {}

    def __repr__(self) -> str:
        return f"TopicState({self.name!r}, {self.id}, {len(self.partitions)} partitions)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TopicState):
            return NotImplemented
        return (self.name, self.id, self.partitions) == (other.name, other.id, other.partitions)

    __hash__ = None  # type: ignore[assignment]

    def copy(self) -> "TopicState":
        """A topic of its own with the same partitions."""
        return TopicState(self.name, self.id, dict(self.partitions))
