"""The life of a broker: registered, unfenced, shut down, killed; and what becomes of its partitions."""

from typing import Any
from uuid import UUID

import pytest

from headrace.errors import ErrorCode, KafkaError
from headrace.metadata.ids import LOST_DIRECTORY, UNASSIGNED_DIRECTORY, is_directory_online
from headrace.metadata.partitions import NO_LEADER, RECOVERED, RECOVERING, PartitionState
from headrace.metadata.versions import supported_features
from headrace.protocol.disk_records.cluster_metadata import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)
from headrace.protocol.message import Message
from headrace.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from headrace.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from headrace.protocol.messages.broker_registration import BrokerRegistrationRequest, Feature
from headrace.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from headrace.protocol.messages.unregister_broker import UnregisterBrokerRequest
from tests.support_metadata import CLUSTER_ID, DATA, STATIC, MetadataNode, on_loop, started

RELEASES = ["3.3", "3.5", "3.6", "3.7", "3.9", "4.0", "4.1", "4.2", "4.3"]


def partition(node: MetadataNode, topic: str = "t") -> PartitionState:
    return node.image.topics[topic].partitions[0]


def states(node: MetadataNode, topic: str = "t") -> tuple[object, ...]:
    found = partition(node, topic)
    return found.leader, found.isr, found.elr, found.last_known_elr, found.leader_recovery_state


@on_loop
async def test_a_start_writes_what_kafkas_start_writes() -> None:
    node = await started()
    kinds = [type(record) for record in node.records()[-4:]]
    assert kinds == [
        RegisterControllerRecord,
        RegisterBrokerRecord,
        BrokerRegistrationChangeRecord,
        BrokerRegistrationChangeRecord,
    ]
    broker = node.image.brokers[1]
    assert (broker.epoch, broker.fenced) == (node.image.registration_offsets[1], False)
    assert broker.epoch == node.metadata.broker_epoch
    assert broker.endpoints["PLAINTEXT"][:3] == ("PLAINTEXT", "127.0.0.1", 9092)
    assert "CONTROLLER" not in broker.endpoints
    assert {name: tuple(each) for name, each in broker.features.items()} == supported_features()
    assert broker.cordoned_log_dirs == ()
    assert node.image.controllers[1].endpoints["CONTROLLER"].port == 9093


@on_loop
async def test_a_clean_stop_leaves_partitions_to_their_eligible_leader() -> None:
    node = await started()
    await node.create("t")
    before = node.metadata.quorum.next_offset
    await node.metadata.stop_broker()
    kinds = [type(record) for record in node.records(before)]
    assert kinds == [
        BrokerRegistrationChangeRecord,
        PartitionChangeRecord,
        BrokerRegistrationChangeRecord,
    ]
    assert states(node) == (NO_LEADER, (), (1,), (1,), RECOVERED)
    assert node.image.brokers[1].fenced
    await node.stop()
    again = node.restarted()
    await again.start()
    assert states(again) == (1, (1,), (), (), RECOVERED)
    assert (partition(again).leader_epoch, partition(again).partition_epoch) == (2, 2)


@on_loop
async def test_a_killed_broker_is_back_at_once_and_led_by_its_last_leader() -> None:
    node = await started()
    await node.create("t")
    epoch = node.metadata.broker_epoch
    again = node.restarted()
    await again.start()
    assert again.metadata.broker_epoch > epoch
    # Its log may lack what only the operating system had, which is why Kafka marks it as recovering.
    assert states(again) == (1, (1,), (), (), RECOVERING)
    assert partition(again).leader_epoch == 2


@on_loop
async def test_without_eligible_leaders_the_isr_stays_with_the_only_replica() -> None:
    node = MetadataNode()
    node.format("4.0")
    await node.start()
    await node.create("t")
    again = node.restarted()
    await again.start()
    assert states(again) == (1, (1,), (), (), RECOVERED)
    assert partition(again).leader_epoch == 2
    await again.metadata.stop_broker()
    assert states(again) == (NO_LEADER, (1,), (), (), RECOVERED)


@pytest.mark.parametrize("release", RELEASES)
@on_loop
async def test_every_metadata_version_starts_stops_is_killed_and_comes_back(release: str) -> None:
    node = MetadataNode()
    node.format(release)
    await node.start()
    await node.create("t", 2)
    await node.metadata.take_snapshot()
    await node.stop()
    for _ in range(2):
        node = node.restarted()
        await node.start()
        assert partition(node)[:1] == ((1,),)
        assert partition(node).leader == 1
    await node.metadata.take_snapshot()
    version = node.image.metadata_version
    assert str(version).startswith(release)
    assert bool(node.image.controllers) == version.has_controller_registration
    assert bool(node.image.brokers[1].log_dirs) == version.has_directories
    last = node.restarted()
    await last.start()
    assert last.image.topics["t"].id == node.image.topics["t"].id
    assert sorted(last.image.topics["t"].partitions) == [0, 1]


def registration(node: MetadataNode, **fields: Any) -> BrokerRegistrationRequest:
    features = [
        Feature(name=name, min_supported_version=least, max_supported_version=most)
        for name, (least, most) in supported_features().items()
    ]
    values: dict[str, Any] = {
        "broker_id": 2,
        "cluster_id": CLUSTER_ID,
        "incarnation_id": UUID(int=0x99),
        "features": features,
        "rack": None,
        "log_dirs": [UUID(int=0x1000)],
    }
    return BrokerRegistrationRequest(**{**values, **fields})


@pytest.mark.parametrize(
    ("fields", "code", "message"),
    [
        (
            {"cluster_id": "other"},
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"Expected cluster ID {CLUSTER_ID}, but got cluster ID other",
        ),
        ({"log_dirs": []}, ErrorCode.INVALID_REGISTRATION, "No directories specified in request"),
        (
            {"log_dirs": [UNASSIGNED_DIRECTORY]},
            ErrorCode.INVALID_REGISTRATION,
            "Reserved directory ID in request",
        ),
        (
            {"log_dirs": [UUID(int=500), UUID(int=500)]},
            ErrorCode.INVALID_REGISTRATION,
            "Duplicate directory ID in request",
        ),
        (
            {"features": []},
            ErrorCode.INVALID_REGISTRATION,
            "Request features do not contain 'metadata.version'",
        ),
        (
            {
                "features": [
                    Feature(name="metadata.version", min_supported_version=7, max_supported_version=29)
                ]
            },
            ErrorCode.UNSUPPORTED_VERSION,
            "Unable to register because the broker does not support finalized version 30 of "
            "metadata.version. The broker wants a version between 7 and 29, inclusive.",
        ),
        (
            {"is_migrating_zk_broker": True},
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            "Controller does not support registering ZK brokers.",
        ),
    ],
)
@on_loop
async def test_a_registration_that_does_not_fit_is_refused(
    fields: dict[str, Any], code: ErrorCode, message: str
) -> None:
    node = await started()
    with pytest.raises(KafkaError) as refused:
        await node.metadata.controller.register_broker(registration(node, **fields))
    assert (refused.value.code, refused.value.message) == (code, message)


@on_loop
async def test_a_directory_belongs_to_one_broker() -> None:
    node = await started()
    own = list(node.metadata.directories.ids.values())
    with pytest.raises(KafkaError) as refused:
        await node.metadata.controller.register_broker(registration(node, log_dirs=own))
    assert "Broker 1 is already registered with directory" in refused.value.message


@on_loop
async def test_another_broker_registers_unfences_and_leaves() -> None:
    node = await started()
    controller = node.metadata.controller
    reply = await controller.register_broker(registration(node))
    assert node.image.brokers[2].fenced

    async def beat(**fields: Any) -> tuple[bool, bool, bool]:
        request = BrokerHeartbeatRequest(broker_id=2, broker_epoch=reply.broker_epoch, **fields)
        answer = await controller.heartbeat(request)
        return answer.is_caught_up, answer.is_fenced, answer.should_shut_down

    assert await beat(current_metadata_offset=0) == (False, True, False)
    assert await beat(current_metadata_offset=reply.broker_epoch) == (True, False, False)
    with pytest.raises(KafkaError) as refused:
        await controller.register_broker(registration(node, incarnation_id=UUID(int=0x77)))
    assert refused.value.code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    await node.create("t", 1, 2)
    assert set(partition(node).replicas) == {1, 2}
    offset = node.image.offset
    assert await beat(current_metadata_offset=offset, want_fence=True) == (True, True, False)
    assert partition(node).isr == (1,)
    assert (await beat(current_metadata_offset=offset, want_shut_down=True))[2]
    await controller.unregister_broker(UnregisterBrokerRequest(broker_id=2))
    assert list(node.image.brokers) == [1]
    with pytest.raises(KafkaError) as refused:
        await controller.unregister_broker(UnregisterBrokerRequest(broker_id=2))
    assert refused.value.code == ErrorCode.BROKER_ID_NOT_REGISTERED
    assert refused.value.message == "Broker ID 2 is not currently registered"


@on_loop
async def test_an_old_epoch_is_told_so() -> None:
    node = await started()
    for broker_id, epoch, message in (
        (1, 3, f"Expected broker epoch {node.metadata.broker_epoch}, but got broker epoch 3"),
        (5, 3, "No broker registration found for broker id 5"),
    ):
        with pytest.raises(KafkaError) as refused:
            await node.metadata.controller.heartbeat(
                BrokerHeartbeatRequest(broker_id=broker_id, broker_epoch=epoch)
            )
        assert (refused.value.code, refused.value.message) == (ErrorCode.STALE_BROKER_EPOCH, message)


@on_loop
async def test_a_failed_directory_takes_its_partitions_offline() -> None:
    node = MetadataNode(texts={**STATIC, "log.dirs": f"{DATA},/more"})
    node.format()
    await node.start()
    first, second = (node.metadata.directories.ids[path] for path in (DATA, "/more"))
    await node.create("t")
    assert partition(node).directories == (UNASSIGNED_DIRECTORY,)
    await node.metadata.report_directories([second])
    assert node.image.brokers[1].log_dirs == (first,)
    await node.create("u")
    assert partition(node, "u").directories == (first,)
    await node.metadata.report_directories([first])
    assert partition(node, "u").leader == NO_LEADER


@on_loop
async def test_a_broker_with_all_directories_cordoned_gets_no_partitions() -> None:
    node = await started()
    await node.metadata.report_directories([], list(node.metadata.directories.ids.values()))
    result = await node.create("t")
    assert result.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert result.error_message == (
        "Unable to replicate the partition 1 time(s): All brokers are currently fenced, or have all their "
        "log directories cordoned."
    )


def test_a_lost_directory_is_never_online() -> None:
    assert not is_directory_online(LOST_DIRECTORY, ())
    assert is_directory_online(UNASSIGNED_DIRECTORY, (UUID(int=500),))
    assert is_directory_online(UUID(int=500), ())
    assert not is_directory_online(UUID(int=501), (UUID(int=500),))


@on_loop
async def test_producer_ids_come_in_blocks_that_never_repeat() -> None:
    node = await started()

    async def allocate(current: MetadataNode) -> tuple[int, int]:
        request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=current.metadata.broker_epoch)
        reply = await current.metadata.controller.allocate_producer_ids(request)
        return reply.producer_id_start, reply.producer_id_len

    assert [await allocate(node) for _ in range(2)] == [(0, 1000), (1000, 1000)]
    again = node.restarted()
    await again.start()
    await again.metadata.take_snapshot()
    assert await allocate(again) == (2000, 1000)
    third = again.restarted()
    await third.start()
    assert await allocate(third) == (3000, 1000)
    with pytest.raises(KafkaError) as refused:
        await third.metadata.controller.allocate_producer_ids(
            AllocateProducerIdsRequest(broker_id=1, broker_epoch=0)
        )
    assert refused.value.code == ErrorCode.STALE_BROKER_EPOCH


def asked(topic: str, index: int) -> DescribeQuorumRequest:
    partition_data = DescribeQuorumRequestPartitionData(partition_index=index)
    return DescribeQuorumRequest(
        topics=[DescribeQuorumRequestTopicData(topic_name=topic, partitions=[partition_data])]
    )


@on_loop
async def test_the_quorum_describes_itself() -> None:
    node = await started()
    response = node.metadata.controller.describe_quorum(asked("__cluster_metadata", 0))
    (found,) = response.topics[0].partitions
    assert (found.leader_id, found.leader_epoch, found.high_watermark) == (1, 1, node.image.offset + 1)
    (voter,) = found.current_voters
    assert (voter.replica_id, voter.log_end_offset) == (1, node.image.offset + 1)
    assert voter.last_caught_up_timestamp == node.clock.now_ms()
    assert found.observers == []
    (described,) = response.nodes
    assert [(each.name, each.host, each.port) for each in described.listeners] == [
        ("CONTROLLER", "127.0.0.1", 9093)
    ]
    assert node.metadata.controller.describe_quorum(asked("__cluster_metadata", 0), 1).nodes == []


@pytest.mark.parametrize("request_of", [asked("other", 0), asked("__cluster_metadata", 1)])
@on_loop
async def test_there_is_no_other_quorum(request_of: Message) -> None:
    node = await started()
    assert isinstance(request_of, DescribeQuorumRequest)
    (found,) = node.metadata.controller.describe_quorum(request_of).topics[0].partitions
    assert found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert found.error_message == "This server does not host this topic-partition."
