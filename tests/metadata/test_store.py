"""Replaying committed batches: transactions, positions, what subscribers hear, what cannot be replayed."""

from collections.abc import Sequence
from uuid import UUID

import pytest

from headrace.config.alteration import ResourceType
from headrace.metadata.delta import ConfigResource, MetadataDelta, PartitionId
from headrace.metadata.image import MetadataImage, UnreplayableRecord
from headrace.metadata.store import NO_TRANSACTION, MetadataStore
from headrace.protocol.disk_records.cluster_metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    ZkMigrationStateRecord,
)
from headrace.protocol.message import Message
from headrace.protocol.prefixed import encode_metadata_record
from headrace.raft.batches import ControlBatch, DataBatch
from headrace.raft.snapshots import SnapshotId

TOPIC = UUID(int=0xABC)
ADDED = ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="1")


class Replay:
    """A store that is fed records, and what its subscriber heard."""

    def __init__(self) -> None:
        self.store = MetadataStore()
        self.heard: list[MetadataDelta] = []
        self.offset = 0
        self.store.subscribe(lambda delta, image: self.heard.append(delta))

    @property
    def image(self) -> MetadataImage:
        return self.store.image

    def commit(self, *records: Message, epoch: int = 1, version: int = 0) -> None:
        values = [encode_metadata_record(record, version) for record in records]
        self.commit_values(values, epoch)

    def commit_values(self, values: Sequence[bytes], epoch: int = 1) -> None:
        last = self.offset + len(values) - 1
        self.store.on_committed(DataBatch(self.offset, last, epoch, 500 + last, 100, values))
        self.offset = last + 1


def topic(name: str = "t", topic_id: UUID = TOPIC) -> list[Message]:
    return [
        TopicRecord(name=name, topic_id=topic_id),
        PartitionRecord(
            partition_id=0, topic_id=topic_id, replicas=[1, 2], isr=[1, 2], leader=1, leader_epoch=0
        ),
    ]


def broker(broker_id: int = 1, epoch: int = 7) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(broker_id=broker_id, broker_epoch=epoch, rack=None)


def test_the_image_stands_at_the_last_offset_of_the_last_batch() -> None:
    replay = Replay()
    replay.commit(NoOpRecord(), NoOpRecord(), epoch=4)
    assert (replay.image.offset, replay.image.epoch, replay.image.timestamp) == (1, 4, 501)
    replay.store.on_committed(ControlBatch(2, 2, 5, 900, 91, []))
    assert (replay.image.offset, replay.image.epoch, replay.image.timestamp) == (2, 5, 900)
    assert replay.store.bytes_since_snapshot == 191


def test_a_transaction_counts_as_a_whole_when_it_ends() -> None:
    replay = Replay()
    replay.commit(NoOpRecord())
    replay.commit(BeginTransactionRecord(name="x"), *topic())
    assert replay.image.topics == {}
    assert replay.store.transaction_offset == 1
    replay.commit(ADDED)
    assert replay.image.offset == 0
    assert replay.heard == []
    replay.commit(EndTransactionRecord())
    assert list(replay.image.topics) == ["t"]
    assert replay.image.topic_config("t") == {"retention.ms": "1"}
    assert replay.store.transaction_offset == NO_TRANSACTION
    assert replay.image.offset == 5
    assert len(replay.heard) == 1
    assert replay.heard[0].topics_created == {TOPIC: "t"}


def test_an_aborted_transaction_leaves_nothing() -> None:
    replay = Replay()
    replay.commit(BeginTransactionRecord(), *topic())
    replay.commit(AbortTransactionRecord(reason="failover"), NoOpRecord())
    assert replay.image.topics == {}
    assert replay.image.offset == 4
    assert replay.heard == []


def test_transactions_that_do_not_fit_are_refused() -> None:
    for records in (
        [EndTransactionRecord()],
        [AbortTransactionRecord()],
        [BeginTransactionRecord(), BeginTransactionRecord()],
    ):
        with pytest.raises(UnreplayableRecord, match="transaction"):
            Replay().commit(*records)


def test_subscribers_hear_what_has_changed_and_what_was_before() -> None:
    replay = Replay()
    replay.commit(*topic())
    (created,) = replay.heard
    assert created.topics_created == {TOPIC: "t"}
    assert created.partitions == {PartitionId(TOPIC, 0): None}
    former = replay.image.topics["t"].partitions[0]
    replay.commit(PartitionChangeRecord(partition_id=0, topic_id=TOPIC, isr=[1]), ADDED)
    changed = replay.heard[1]
    assert changed.partitions == {PartitionId(TOPIC, 0): former}
    assert changed.configs == {ConfigResource(ResourceType.TOPIC, "t")}
    replay.commit(RemoveTopicRecord(topic_id=TOPIC))
    deleted = replay.heard[2]
    assert deleted.topics_deleted[TOPIC].name == "t"
    assert (deleted.topics_created, deleted.partitions) == ({}, {})
    assert deleted.configs == {ConfigResource(ResourceType.TOPIC, "t")}
    assert replay.image.configs == {}


def test_nobody_is_bothered_with_batches_that_change_nothing() -> None:
    replay = Replay()
    replay.commit(NoOpRecord(), ZkMigrationStateRecord(zk_migration_state=2))
    assert replay.heard == []


def test_a_subscriber_that_fails_does_not_keep_others_from_hearing(caplog: pytest.LogCaptureFixture) -> None:
    replay = Replay()
    heard: list[MetadataDelta] = []

    def fail(delta: MetadataDelta, image: MetadataImage) -> None:
        raise RuntimeError("out of order")

    replay.store.subscribe(fail)
    replay.store.subscribe(lambda delta, image: heard.append(delta))
    replay.commit(*topic())
    assert len(heard) == 1
    assert list(replay.image.topics) == ["t"]
    assert "to offset 1" in caplog.text
    assert "out of order" in caplog.text


def test_a_topic_recreated_in_one_batch_is_two_topics() -> None:
    replay = Replay()
    replay.commit(*topic())
    other = UUID(int=0xDEF)
    replay.commit(RemoveTopicRecord(topic_id=TOPIC), *topic(topic_id=other))
    delta = replay.heard[1]
    assert delta.topics_created == {other: "t"}
    assert list(delta.topics_deleted) == [TOPIC]
    assert list(delta.partitions) == [PartitionId(other, 0)]
    assert replay.image.topics["t"].id == other


def test_a_named_leader_begins_an_epoch_and_other_changes_do_not() -> None:
    replay = Replay()
    replay.commit(*topic())
    replay.commit(PartitionChangeRecord(partition_id=0, topic_id=TOPIC, isr=[1]))
    partition = replay.image.topics["t"].partitions[0]
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (1, 0, 0)
    replay.commit(PartitionChangeRecord(partition_id=0, topic_id=TOPIC, leader=1))
    partition = replay.image.topics["t"].partitions[0]
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (1, 1, 1)
    assert partition.isr == (1,)


def test_eligible_leaders_can_be_cleared_for_one_topic_or_all() -> None:
    replay = Replay()
    second = UUID(int=0xDEF)
    replay.commit(*topic(), *topic("u", second))
    for topic_id in (TOPIC, second):
        change = PartitionChangeRecord(
            partition_id=0, topic_id=topic_id, eligible_leader_replicas=[2], last_known_elr=[1]
        )
        replay.commit(change, version=2)
    replay.commit(ClearElrRecord(topic_name="t"))
    assert replay.image.topics["t"].partitions[0].elr == ()
    assert replay.image.topics["u"].partitions[0].elr == (2,)
    replay.commit(ClearElrRecord())
    assert replay.image.topics["u"].partitions[0][-2:] == ((), ())


def test_brokers_come_change_and_go() -> None:
    replay = Replay()
    replay.commit(NoOpRecord(), broker())
    assert replay.image.registration_offsets == {1: 1}
    assert replay.image.brokers[1].fenced
    replay.commit(UnfenceBrokerRecord(id=1, epoch=7))
    assert not replay.image.brokers[1].fenced
    replay.commit(FenceBrokerRecord(id=1, epoch=7))
    assert replay.image.brokers[1].fenced
    directory = UUID(int=5000)
    change = BrokerRegistrationChangeRecord(
        broker_id=1,
        broker_epoch=7,
        fenced=-1,
        in_controlled_shutdown=1,
        log_dirs=[directory],
        cordoned_log_dirs=[directory],
    )
    replay.commit(change, version=3)
    found = replay.image.brokers[1]
    assert (found.fenced, found.in_controlled_shutdown, found.is_active) == (False, True, False)
    assert (found.log_dirs, found.takes_partitions) == ((directory,), False)
    replay.commit(UnregisterBrokerRecord(broker_id=1, broker_epoch=7))
    assert replay.image.brokers == {}
    assert all(delta.brokers == {1} for delta in replay.heard)


def test_levels_of_features_are_set_and_removed_but_not_of_kraft_version() -> None:
    replay = Replay()
    replay.commit(FeatureLevelRecord(name="metadata.version", feature_level=25))
    replay.commit(FeatureLevelRecord(name="group.version", feature_level=1))
    replay.commit(FeatureLevelRecord(name="kraft.version", feature_level=1))
    assert replay.image.features == {"metadata.version": 25, "group.version": 1}
    replay.commit(FeatureLevelRecord(name="group.version", feature_level=0))
    assert replay.image.features == {"metadata.version": 25}


@pytest.mark.parametrize(
    "record",
    [
        TopicRecord(name="t", topic_id=UUID(int=1)),
        PartitionRecord(partition_id=0, topic_id=UUID(int=9)),
        PartitionChangeRecord(partition_id=4, topic_id=TOPIC),
        RemoveTopicRecord(topic_id=UUID(int=9)),
        ClearElrRecord(topic_name="nobody"),
        UnregisterBrokerRecord(broker_id=1, broker_epoch=6),
        FenceBrokerRecord(id=9, epoch=7),
    ],
)
def test_a_record_that_fits_nothing_names_its_batch(record: Message) -> None:
    replay = Replay()
    replay.commit(*topic(), broker())
    with pytest.raises(UnreplayableRecord, match="offset 3"):
        replay.commit(record)


def test_a_record_of_a_later_release_is_not_passed_over() -> None:
    replay = Replay()
    with pytest.raises(UnreplayableRecord, match="cannot be read"):
        replay.commit_values([b"\x01\x63\x00\x00"])


def test_after_a_snapshot_brokers_are_current_from_its_end_on() -> None:
    store = MetadataStore()
    store.on_snapshot_batch(DataBatch(1, 1, 3, 0, 100, [encode_metadata_record(broker(), 0)]))
    store.on_snapshot(SnapshotId(50, 3), 77)
    assert (store.image.offset, store.image.epoch, store.image.timestamp) == (49, 3, 77)
    assert store.image.registration_offsets == {1: 49}


def test_a_copy_goes_its_own_way() -> None:
    replay = Replay()
    replay.commit(*topic(), ADDED, broker())
    copy = replay.image.copy()
    assert copy.same_state(replay.image)
    replay.commit(
        PartitionChangeRecord(partition_id=0, topic_id=TOPIC, isr=[2]),
        ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value=None),
    )
    assert copy.topics["t"].partitions[0].isr == (1, 2)
    assert copy.topics_by_id[TOPIC] is copy.topics["t"]
    assert copy.topic_config("t") == {"retention.ms": "1"}
    assert not copy.same_state(replay.image)
