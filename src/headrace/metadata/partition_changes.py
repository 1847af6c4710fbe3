"""How a partition goes on when brokers come and go: who stays in sync, who may still lead, and who does.

Pure functions from a partition to the record that changes it, if any. Eligible leader replicas are those that
fell out of sync below `min.insync.replicas` without losing data; the last known leader is remembered when
nobody is left."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from uuid import UUID

from headrace.metadata.control_view import ControlView
from headrace.metadata.delta import PartitionId
from headrace.metadata.partitions import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    RECOVERING,
    PartitionState,
)
from headrace.metadata.snapshot import VersionedRecord
from headrace.metadata.versions import MetadataVersion
from headrace.protocol.disk_records.cluster_metadata import PartitionChangeRecord

Found = Iterable[tuple[PartitionId, PartitionState]]


@dataclass(slots=True, frozen=True)
class BrokerChange:
    """What happens to one broker: it leaves, it comes, or it comes back from an unclean shutdown."""

    removed: int = NO_LEADER
    added: int = NO_LEADER
    unclean: int = NO_LEADER


@dataclass(slots=True, frozen=True)
class ElectionRules:
    """The circumstances under which a partition's leader is elected."""

    version: MetadataVersion
    elr_enabled: bool
    min_isr: int
    unclean_allowed: bool
    is_acceptable: Callable[[PartitionState, int], bool]


def partition_change_records(view: ControlView, change: BrokerChange, found: Found) -> list[VersionedRecord]:
    """The records that bring partitions in line with what happens to a broker."""
    image = view.image
    version = image.metadata_version
    gone = {change.removed, change.unclean}

    def is_acceptable(broker_id: int) -> bool:
        return broker_id not in gone and (broker_id == change.added or view.is_active(broker_id))

    records: list[VersionedRecord] = []
    rules_of: dict[UUID, ElectionRules] = {}
    for partition_id, partition in found:
        rules = rules_of.get(partition_id.topic_id)
        if rules is None:
            name = image.topics_by_id[partition_id.topic_id].name
            rules = rules_of[partition_id.topic_id] = ElectionRules(
                version,
                image.elr_enabled,
                view.min_isr(name),
                view.allows_unclean_leaders(name),
                _in_online_directory(view, is_acceptable),
            )
        isr = tuple(replica for replica in partition.isr if replica not in gone)
        record = changed_partition(partition, partition_id, isr, rules, unclean=(change.unclean,))
        if record is not None:
            records.append((record, version.partition_record))
    return records


def _in_online_directory(
    view: ControlView, is_acceptable: Callable[[int], bool]
) -> Callable[[PartitionState, int], bool]:
    def check(partition: PartitionState, broker_id: int) -> bool:
        if not is_acceptable(broker_id):
            return False
        directory = partition.directory_of(broker_id)
        broker = view.image.brokers.get(broker_id)
        return directory is not None and broker is not None and broker.has_online(directory)

    return check


def with_broker_in_isr(view: ControlView, broker_id: int) -> Iterator[tuple[PartitionId, PartitionState]]:
    """Partitions that a broker is in sync with."""
    return (each for each in view.partitions() if broker_id in each[1].isr)


def with_broker_in_elr(view: ControlView, broker_id: int) -> Iterator[tuple[PartitionId, PartitionState]]:
    """Partitions that a broker may lead although it is not in sync."""
    return (each for each in view.partitions() if broker_id in each[1].elr)


def without_leader(view: ControlView) -> Iterator[tuple[PartitionId, PartitionState]]:
    """Partitions that nobody leads."""
    return (each for each in view.partitions() if each[1].leader == NO_LEADER)


def changed_partition(
    partition: PartitionState,
    partition_id: PartitionId,
    isr: tuple[int, ...],
    rules: ElectionRules,
    unclean: tuple[int, ...] = (),
) -> PartitionChangeRecord | None:
    """The record that gives a partition this set of in-sync replicas and the leader that follows from it;
    None if nothing changes. `unclean` replicas may have lost data and are no longer eligible."""
    record = PartitionChangeRecord(partition_id=partition_id.partition, topic_id=partition_id.topic_id)
    elr = _eligible(partition, isr, rules, unclean)
    leader, is_unclean = _elect(partition, isr, elr, rules)
    if leader != partition.leader:
        if leader in elr:
            isr, elr = (leader,), tuple(replica for replica in elr if replica != leader)
        record.leader = leader
        if is_unclean:
            # Only the new leader's log counts from here on, whatever others may have had.
            record.isr = [leader]
            elr = ()
            if partition.leader_recovery_state != RECOVERING:
                record.leader_recovery_state = RECOVERING
    if not rules.elr_enabled:
        elr = ()
    if elr != partition.elr:
        record.eligible_leader_replicas = list(elr)
    if record.isr is None and (isr or rules.elr_enabled) and isr != partition.isr:
        record.isr = list(isr)
    _bump_epoch_on_shrink(partition, record, rules)
    _note_last_leader(partition, record, rules)
    return None if _says_nothing(record) else record


def _eligible(
    partition: PartitionState, isr: tuple[int, ...], rules: ElectionRules, unclean: tuple[int, ...]
) -> tuple[int, ...]:
    if not rules.elr_enabled:
        return partition.elr
    if len(isr) >= min(rules.min_isr, len(partition.replicas)):
        return ()
    candidates = sorted({*partition.elr, *partition.isr})
    return tuple(replica for replica in candidates if replica not in isr and replica not in unclean)


def _elect(
    partition: PartitionState, isr: tuple[int, ...], elr: tuple[int, ...], rules: ElectionRules
) -> tuple[int, bool]:
    """The leader, and whether it may lack records that were acknowledged."""
    able = isr or elr
    for replica in (partition.leader, *partition.replicas):
        if replica in able and rules.is_acceptable(partition, replica):
            return replica, False
    if rules.elr_enabled and not able and len(partition.last_known_elr) == 1:
        last_leader = partition.last_known_elr[0]
        if rules.is_acceptable(partition, last_leader):
            return last_leader, True
    if rules.unclean_allowed:
        for replica in partition.replicas:
            if rules.is_acceptable(partition, replica):
                return replica, True
    return NO_LEADER, False


def _bump_epoch_on_shrink(
    partition: PartitionState, record: PartitionChangeRecord, rules: ElectionRules
) -> None:
    """Before 3.6 a leader only noticed that its ISR shrank when its epoch grew."""
    shrinks = record.isr is not None and not set(partition.isr) <= set(record.isr)
    if rules.version.bumps_epoch_on_isr_shrink and shrinks and record.leader == NO_LEADER_CHANGE:
        record.leader = partition.leader


def _note_last_leader(partition: PartitionState, record: PartitionChangeRecord, rules: ElectionRules) -> None:
    if not rules.elr_enabled:
        return
    if record.leader == NO_LEADER and not partition.last_known_elr:
        record.last_known_elr = [partition.leader]
    elif record.leader >= 0 and partition.last_known_elr:
        record.last_known_elr = []


def _says_nothing(record: PartitionChangeRecord) -> bool:
    return (
        record.isr is None
        and record.eligible_leader_replicas is None
        and record.last_known_elr is None
        and record.leader == NO_LEADER_CHANGE
        and record.leader_recovery_state == -1
    )
