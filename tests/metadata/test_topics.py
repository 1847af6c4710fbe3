"""Creating and deleting topics, adding partitions: each with Kafka's codes and words."""

from uuid import UUID

import pytest

from headrace.errors import ErrorCode, KafkaError
from headrace.metadata.auto_creation import auto_creatable_topic
from headrace.protocol.disk_records.cluster_metadata import (
    ClearElrRecord,
    ConfigRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from headrace.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from headrace.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from headrace.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from headrace.types import ZERO_UUID
from tests.support_metadata import MetadataNode, on_loop, started


async def create(
    node: MetadataNode, *topics: CreatableTopic, validate_only: bool = False
) -> list[CreatableTopicResult]:
    request = CreateTopicsRequest(topics=list(topics), validate_only=validate_only)
    return (await node.metadata.controller.create_topics(request)).topics


def outcome(result: CreatableTopicResult | CreatePartitionsTopicResult) -> tuple[ErrorCode, str | None]:
    return ErrorCode(result.error_code), result.error_message


def simple(name: str, partitions: int = 1, factor: int = 1) -> CreatableTopic:
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=factor)


def manual(name: str, *assignments: tuple[int, list[int]], **fields: int) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=fields.get("num_partitions", -1),
        replication_factor=fields.get("replication_factor", -1),
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in assignments
        ],
    )


@on_loop
async def test_a_topic_becomes_records_in_kafkas_order() -> None:
    node = await started()
    before = node.metadata.quorum.next_offset
    result = await node.create("orders", 2, cleanup_policy="compact", retention_ms="5")
    assert outcome(result) == (ErrorCode.NONE, None)
    assert (result.num_partitions, result.replication_factor) == (2, 1)
    records = node.records(before)
    assert [type(record) for record in records] == [
        TopicRecord,
        ConfigRecord,
        ConfigRecord,
        PartitionRecord,
        PartitionRecord,
    ]
    topic = node.image.topics["orders"]
    assert topic.id == result.topic_id
    assert topic.id.version == 4
    partition = topic.partitions[1]
    assert (partition.replicas, partition.isr, partition.leader) == ((1,), (1,), 1)
    assert (partition.leader_epoch, partition.partition_epoch) == (0, 0)
    assert partition.directories == tuple(node.metadata.directories.ids.values())
    assert node.image.topic_config("orders") == {"cleanup.policy": "compact", "retention.ms": "5"}


@on_loop
async def test_the_answer_tells_every_key_of_the_new_topic_by_name() -> None:
    node = await started(log_retention_ms="777")
    result = await node.create("orders", cleanup_policy="compact")
    assert result.configs is not None
    names = [entry.name for entry in result.configs]
    assert names == sorted(names)
    told = {entry.name: (entry.value, entry.config_source) for entry in result.configs}
    assert told["cleanup.policy"] == ("compact", 1)
    assert told["retention.ms"] == ("777", 4)
    assert told["segment.index.bytes"][1] == 5
    assert told["min.insync.replicas"] == ("1", 3)
    assert "internal.segment.bytes" not in told


@on_loop
async def test_who_may_not_describe_a_topic_is_not_told_its_configuration() -> None:
    node = await started()
    request = CreateTopicsRequest(topics=[simple("hidden")])
    response = await node.metadata.controller.create_topics(request, lambda name: False)
    (result,) = response.topics
    assert result.error_code == ErrorCode.NONE
    assert result.topic_config_error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert (result.num_partitions, result.replication_factor, result.configs) == (-1, -1, [])


@on_loop
async def test_defaults_come_from_the_configuration() -> None:
    node = await started(num_partitions="3")
    (result,) = await create(node, simple("orders", -1, -1))
    assert (result.num_partitions, result.replication_factor) == (3, 1)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("a b", "'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("ä", "'ä' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("x" * 250, f"the length of '{'x' * 250}' is longer than the max allowed length 249"),
    ],
)
@on_loop
async def test_a_name_that_cannot_be_is_refused(name: str, reason: str) -> None:
    node = await started()
    (result,) = await create(node, simple(name))
    assert outcome(result) == (ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


@on_loop
async def test_names_that_metrics_cannot_tell_apart_collide() -> None:
    node = await started()
    await node.create("a.b_c")
    (first, second) = await create(node, simple("a_b.c"), simple("a.b_c"))
    message = "Topic 'a_b.c' collides with existing topic: a.b_c"
    assert outcome(first) == (ErrorCode.INVALID_TOPIC_EXCEPTION, message)
    assert outcome(second) == (ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'a.b_c' already exists.")
    assert (await node.create("a-b-c")).error_code == ErrorCode.NONE


@on_loop
async def test_each_topic_of_a_request_is_its_own() -> None:
    node = await started()
    await node.create("there")
    results = await create(
        node,
        simple("there"),
        simple("fine"),
        simple("zero", 0),
        simple("many", 1, 3),
        simple("none", 1, 0),
        simple("twice"),
        simple("twice"),
        simple("__cluster_metadata"),
    )
    told = {result.name: outcome(result) for result in results}
    assert told == {
        "there": (ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'there' already exists."),
        "fine": (ErrorCode.NONE, None),
        "zero": (
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        ),
        "many": (
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be "
            "reached because only 1 broker(s) are registered or some brokers have all their log directories "
            "cordoned.",
        ),
        "none": (
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        ),
        "twice": (ErrorCode.INVALID_REQUEST, "Duplicate topic name."),
        "__cluster_metadata": (
            ErrorCode.INVALID_REQUEST,
            "Creation of internal topic __cluster_metadata is prohibited.",
        ),
    }
    assert sorted(node.image.topics) == ["fine", "there"]


@pytest.mark.parametrize(
    ("topic", "code", "message"),
    [
        (
            manual("t", (0, [1]), replication_factor=1),
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        ),
        (
            manual("t", (0, [1]), num_partitions=1),
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        ),
        (
            manual("t", (0, [1]), (0, [1])),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Found multiple manual partition assignments for partition 0",
        ),
        (
            manual("t", (0, [1]), (2, [1])),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (
            manual("t", (0, [9])),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker 9, but no such broker is registered.",
        ),
        (
            manual("t", (0, [1, 1])),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes the broker 1 more than once.",
        ),
        (
            manual("t", (0, [])),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes an empty replica list.",
        ),
    ],
)
@on_loop
async def test_a_manual_assignment_is_checked(topic: CreatableTopic, code: ErrorCode, message: str) -> None:
    node = await started()
    (result,) = await create(node, topic)
    assert outcome(result) == (code, message)


@on_loop
async def test_a_manual_assignment_is_taken_whatever_its_order() -> None:
    node = await started()
    (result,) = await create(node, manual("t", (1, [1]), (0, [1])))
    assert outcome(result) == (ErrorCode.NONE, None)
    assert list(node.image.topics["t"].partitions) == [0, 1]


@on_loop
async def test_a_bad_configuration_refuses_its_topic_only() -> None:
    node = await started()
    bad = CreatableTopic(
        name="bad",
        num_partitions=1,
        replication_factor=1,
        configs=[CreatableTopicConfig(name="retention.ms", value="soon")],
    )
    unknown = CreatableTopic(
        name="unknown",
        num_partitions=1,
        replication_factor=1,
        configs=[CreatableTopicConfig(name="colour", value="red")],
    )
    absent = CreatableTopic(
        name="absent",
        num_partitions=1,
        replication_factor=1,
        configs=[CreatableTopicConfig(name="a", value=None), CreatableTopicConfig(name="b", value=None)],
    )
    results = await create(node, bad, unknown, absent, simple("good"))
    assert [result.error_code for result in results] == [40, 40, 40, 0]
    assert results[0].error_message is not None
    assert results[0].error_message.startswith("Invalid value soon for configuration retention.ms")
    assert results[1].error_message == "Unknown topic config name: colour"
    assert results[2].error_message == "Null value not supported for topic configs: a,b"


@on_loop
async def test_validate_only_changes_nothing() -> None:
    node = await started()
    before = node.metadata.quorum.next_offset
    good, bad = await create(node, simple("good"), simple("bad", 0), validate_only=True)
    assert (good.error_code, bad.error_code) == (ErrorCode.NONE, ErrorCode.INVALID_PARTITIONS)
    assert node.metadata.quorum.next_offset == before
    assert node.image.topics == {}


@on_loop
async def test_a_request_for_too_many_partitions_is_refused_as_a_whole() -> None:
    node = await started()
    with pytest.raises(KafkaError) as refused:
        await create(node, simple("a", 6_000), simple("b", 6_000))
    assert refused.value.code == ErrorCode.POLICY_VIOLATION
    assert refused.value.message == "Excessively large number of partitions per request."


@on_loop
async def test_a_topic_with_its_own_min_isr_clears_eligible_leaders_as_kafka_does() -> None:
    node = await started()
    before = node.metadata.quorum.next_offset
    await node.create("t", min_insync_replicas="1")
    kinds = [type(record) for record in node.records(before)]
    assert kinds == [TopicRecord, ConfigRecord, ClearElrRecord, PartitionRecord]


@on_loop
async def test_topics_are_deleted_by_name_or_id_with_their_configuration() -> None:
    node = await started()
    first = await node.create("first", retention_ms="1")
    await node.create("second")
    before = node.metadata.quorum.next_offset
    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(topic_id=first.topic_id), DeleteTopicState(name="second")]
    )
    response = await node.metadata.controller.delete_topics(request)
    assert [(each.name, each.error_code) for each in response.responses] == [("first", 0), ("second", 0)]
    assert [type(record) for record in node.records(before)] == [RemoveTopicRecord, RemoveTopicRecord]
    assert node.image.topics == {}
    assert node.image.topic_config("first") == {}
    again = await node.create("first")
    assert again.topic_id != first.topic_id


@on_loop
async def test_every_topic_to_delete_is_answered_by_itself() -> None:
    node = await started()
    fine = await node.create("fine")
    both = await node.create("both")
    unknown = UUID(int=0x42)
    request = DeleteTopicsRequest(
        topics=[
            DeleteTopicState(name="fine"),
            DeleteTopicState(name="missing"),
            DeleteTopicState(topic_id=unknown),
            DeleteTopicState(name="twice"),
            DeleteTopicState(name="twice"),
            DeleteTopicState(topic_id=UUID(int=0x43)),
            DeleteTopicState(topic_id=UUID(int=0x43)),
            DeleteTopicState(),
            DeleteTopicState(name="x", topic_id=unknown),
            DeleteTopicState(name="both"),
            DeleteTopicState(topic_id=both.topic_id),
        ]
    )
    response = await node.metadata.controller.delete_topics(request)

    def told(result: DeletableTopicResult) -> tuple[str | None, UUID, ErrorCode, str | None]:
        return result.name, result.topic_id, ErrorCode(result.error_code), result.error_message

    invalid = ErrorCode.INVALID_REQUEST
    expected = [
        ("fine", fine.topic_id, ErrorCode.NONE, None),
        (
            "missing",
            ZERO_UUID,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "This server does not host this topic-partition.",
        ),
        (None, unknown, ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID."),
        ("twice", ZERO_UUID, invalid, "Duplicate topic name."),
        (None, UUID(int=0x43), invalid, "Duplicate topic id."),
        (None, ZERO_UUID, invalid, "Neither topic name nor id were specified."),
        ("x", unknown, invalid, "You may not specify both topic name and topic id."),
        (
            "both",
            both.topic_id,
            invalid,
            "The provided topic name maps to an ID that was already supplied.",
        ),
    ]
    assert sorted(map(str, map(told, response.responses))) == sorted(map(str, expected))
    assert list(node.image.topics) == ["both"]


@on_loop
async def test_deletion_can_be_disabled() -> None:
    node = await started(delete_topic_enable="false")
    await node.create("t")
    request = DeleteTopicsRequest(topic_names=["t"])
    with pytest.raises(KafkaError) as refused:
        await node.metadata.controller.delete_topics(request, 6)
    assert (refused.value.code, refused.value.message) == (ErrorCode.TOPIC_DELETION_DISABLED, "")
    with pytest.raises(KafkaError) as refused:
        await node.metadata.controller.delete_topics(request, 2)
    assert refused.value.code == ErrorCode.INVALID_REQUEST


async def add(
    node: MetadataNode, *topics: CreatePartitionsTopic, validate_only: bool = False
) -> list[CreatePartitionsTopicResult]:
    request = CreatePartitionsRequest(topics=list(topics), validate_only=validate_only)
    return (await node.metadata.controller.create_partitions(request)).results


def more(name: str, count: int, assignments: list[list[int]] | None = None) -> CreatePartitionsTopic:
    given = (
        None if assignments is None else [CreatePartitionsAssignment(broker_ids=each) for each in assignments]
    )
    return CreatePartitionsTopic(name=name, count=count, assignments=given)


@on_loop
async def test_partitions_are_added_behind_those_there_are() -> None:
    node = await started()
    await node.create("t", 2)
    (validated,) = await add(node, more("t", 4), validate_only=True)
    assert outcome(validated) == (ErrorCode.NONE, None)
    assert len(node.image.topics["t"].partitions) == 2
    (added,) = await add(node, more("t", 4))
    assert outcome(added) == (ErrorCode.NONE, None)
    (placed,) = await add(node, more("t", 5, [[1]]))
    assert outcome(placed) == (ErrorCode.NONE, None)
    assert list(node.image.topics["t"].partitions) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("topic", "code", "message"),
    [
        (more("missing", 2), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
        (more("t", 2), ErrorCode.INVALID_PARTITIONS, "Topic already has 2 partition(s)."),
        (
            more("t", 1),
            ErrorCode.INVALID_PARTITIONS,
            "The topic t currently has 2 partition(s); 1 would not be an increase.",
        ),
        (
            more("t", 4, [[1]]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
        ),
        (
            more("t", 3, [[7]]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker 7, but no such broker is registered.",
        ),
    ],
)
@on_loop
async def test_partitions_that_cannot_be_added(
    topic: CreatePartitionsTopic, code: ErrorCode, message: str | None
) -> None:
    node = await started()
    await node.create("t", 2)
    (result,) = await add(node, topic)
    assert outcome(result) == (code, message)


@on_loop
async def test_no_number_of_partitions_is_large_enough_to_hurt() -> None:
    node = await started()
    await node.create("t")
    await node.create("u")
    refusal = (ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    results = await add(node, more("t", 2**31 - 1), more("u", 2), validate_only=True)
    assert [outcome(result) for result in results] == [refusal, (ErrorCode.NONE, None)]
    results = await add(node, more("t", 6_001), more("u", 6_001), validate_only=True)
    assert [outcome(result) for result in results] == [(ErrorCode.NONE, None), refusal]


@on_loop
async def test_a_topic_named_twice_gets_no_partitions() -> None:
    node = await started()
    await node.create("t")
    (result,) = await add(node, more("t", 2), more("t", 3))
    assert outcome(result) == (ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    assert len(node.image.topics["t"].partitions) == 1


@on_loop
async def test_topics_that_are_asked_for_are_created_by_their_kind() -> None:
    node = await started(
        offsets_topic_num_partitions="3",
        offsets_topic_replication_factor="1",
        transaction_state_log_replication_factor="1",
        transaction_state_log_num_partitions="2",
        share_coordinator_state_topic_replication_factor="1",
        share_coordinator_state_topic_num_partitions="2",
        num_partitions="4",
    )
    names = ["__consumer_offsets", "__transaction_state", "__share_group_state", "orders"]
    response = await node.metadata.controller.auto_create_topics(names)
    assert [each.error_code for each in response.topics] == [0, 0, 0, 0]
    counts = [len(node.image.topics[name].partitions) for name in names]
    assert counts == [3, 2, 2, 4]
    assert node.image.topic_config("__consumer_offsets") == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }
    assert node.image.topic_config("__transaction_state")["compression.type"] == "uncompressed"
    assert node.image.topic_config("__share_group_state")["retention.ms"] == "-1"


@on_loop
async def test_an_asked_for_topic_leaves_defaults_to_the_controller() -> None:
    node = await started()
    topic = auto_creatable_topic(node.config, "orders")
    assert (topic.num_partitions, topic.replication_factor) == (-1, -1)
