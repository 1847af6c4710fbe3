"""Who stays in sync and who leads when replicas come and go."""

from uuid import UUID

import pytest

from headrace.metadata.delta import PartitionId
from headrace.metadata.partition_changes import ElectionRules, changed_partition
from headrace.metadata.partitions import NO_LEADER, RECOVERED, RECOVERING, PartitionState
from headrace.metadata.versions import MetadataVersion
from headrace.protocol.disk_records.cluster_metadata import PartitionChangeRecord

ID = PartitionId(UUID(int=7), 3)


def partition(
    isr: tuple[int, ...],
    leader: int,
    *,
    elr: tuple[int, ...] = (),
    last: tuple[int, ...] = (),
    recovery: int = RECOVERED,
) -> PartitionState:
    return PartitionState((1, 2, 3), (UUID(int=1),) * 3, isr, (), (), leader, recovery, 5, 9, elr, last)


def rules(
    *alive: int,
    elr: bool = True,
    min_isr: int = 2,
    unclean: bool = False,
    version: MetadataVersion = MetadataVersion.V4_3_IV0,
) -> ElectionRules:
    return ElectionRules(version, elr, min_isr, unclean, lambda _, broker_id: broker_id in alive)


def told(record: PartitionChangeRecord | None) -> dict[str, object]:
    """The fields that a record sets."""
    assert record is not None
    return {
        name: value
        for name in ("leader", "isr", "eligible_leader_replicas", "last_known_elr", "leader_recovery_state")
        if (value := getattr(record, name)) != PartitionChangeRecord.DEFAULTS[name]
    }


def test_nothing_to_change_is_no_record() -> None:
    assert changed_partition(partition((1, 2, 3), 1), ID, (1, 2, 3), rules(1, 2, 3)) is None


def test_a_follower_leaves_the_isr_without_a_new_epoch() -> None:
    record = changed_partition(partition((1, 2, 3), 1), ID, (1, 2), rules(1, 2))
    assert told(record) == {"isr": [1, 2]}


def test_a_lost_leader_is_followed_by_the_first_replica_in_sync() -> None:
    record = changed_partition(partition((1, 2, 3), 1), ID, (2, 3), rules(2, 3))
    assert told(record) == {"leader": 2, "isr": [2, 3]}


def test_below_min_isr_who_leaves_stays_eligible() -> None:
    record = changed_partition(partition((1, 2), 1), ID, (2,), rules(2))
    assert told(record) == {"leader": 2, "isr": [2], "eligible_leader_replicas": [1]}


def test_min_isr_is_never_more_than_there_are_replicas() -> None:
    record = changed_partition(partition((1, 2, 3), 1), ID, (1, 2), rules(1, 2, min_isr=9))
    assert told(record) == {"isr": [1, 2], "eligible_leader_replicas": [3]}


def test_the_last_leader_is_remembered_when_nobody_is_left() -> None:
    record = changed_partition(partition((1,), 1, elr=(2,)), ID, (), rules())
    assert told(record) == {
        "leader": NO_LEADER,
        "isr": [],
        "eligible_leader_replicas": [1, 2],
        "last_known_elr": [1],
    }


def test_an_eligible_replica_that_comes_back_leads() -> None:
    record = changed_partition(partition((), NO_LEADER, elr=(1, 2), last=(1,)), ID, (), rules(2))
    assert told(record) == {
        "leader": 2,
        "isr": [2],
        "eligible_leader_replicas": [1],
        "last_known_elr": [],
    }


def test_a_replica_after_an_unclean_shutdown_is_not_eligible() -> None:
    record = changed_partition(partition((), NO_LEADER, elr=(1,), last=(1,)), ID, (), rules(), (1,))
    assert told(record) == {"eligible_leader_replicas": []}


def test_with_nobody_eligible_the_last_leader_takes_over_and_recovers() -> None:
    record = changed_partition(partition((), NO_LEADER, last=(1,)), ID, (), rules(1, 2))
    assert told(record) == {
        "leader": 1,
        "isr": [1],
        "leader_recovery_state": RECOVERING,
        "last_known_elr": [],
    }


def test_the_last_leader_waits_as_long_as_somebody_is_eligible() -> None:
    state = partition((), NO_LEADER, elr=(3,), last=(1,))
    assert changed_partition(state, ID, (), rules(1)) is None


def test_without_the_feature_the_last_in_sync_stays_in_the_isr() -> None:
    record = changed_partition(partition((1,), 1), ID, (), rules(elr=False))
    assert told(record) == {"leader": NO_LEADER}


def test_an_unclean_election_takes_any_replica_alive() -> None:
    record = changed_partition(partition((1,), 1), ID, (), rules(3, elr=False, unclean=True))
    assert told(record) == {"leader": 3, "isr": [3], "leader_recovery_state": RECOVERING}


def test_a_partition_that_recovers_already_is_not_marked_again() -> None:
    state = partition((1,), 1, recovery=RECOVERING)
    record = changed_partition(state, ID, (), rules(3, elr=False, unclean=True))
    assert told(record) == {"leader": 3, "isr": [3]}


def test_turning_the_feature_off_drops_who_is_eligible() -> None:
    state = partition((1,), 1, elr=(2,))
    record = changed_partition(state, ID, (1,), rules(1, elr=False))
    assert told(record) == {"eligible_leader_replicas": []}


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (MetadataVersion.V3_5_IV2, {"isr": [1, 2], "leader": 1}),
        (MetadataVersion.V3_6_IV0, {"isr": [1, 2]}),
    ],
)
def test_before_3_6_a_shrinking_isr_begins_a_leader_epoch(
    version: MetadataVersion, expected: dict[str, object]
) -> None:
    record = changed_partition(partition((1, 2, 3), 1), ID, (1, 2), rules(1, 2, elr=False, version=version))
    assert told(record) == expected
