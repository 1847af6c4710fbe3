"""Changing configurations through the controller."""

import pytest

from headrace.config.alteration import Operation, ResourceType
from headrace.errors import ErrorCode
from headrace.metadata.delta import ConfigResource
from headrace.protocol.disk_records.cluster_metadata import ClearElrRecord, ConfigRecord
from headrace.protocol.messages import alter_configs as legacy
from headrace.protocol.messages import incremental_alter_configs as incremental
from tests.support_metadata import MetadataNode, on_loop, started

Outcome = tuple[ErrorCode, str | None]


def change(
    resource_type: int, name: str, *changes: tuple[str, int, str | None]
) -> incremental.AlterConfigsResource:
    return incremental.AlterConfigsResource(
        resource_type=resource_type,
        resource_name=name,
        configs=[
            incremental.AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in changes
        ],
    )


def topic(name: str, *changes: tuple[str, int, str | None]) -> incremental.AlterConfigsResource:
    return change(ResourceType.TOPIC, name, *changes)


async def alter(
    node: MetadataNode, *resources: incremental.AlterConfigsResource, validate_only: bool = False
) -> list[Outcome]:
    request = incremental.IncrementalAlterConfigsRequest(
        resources=list(resources), validate_only=validate_only
    )
    response = await node.metadata.controller.incremental_alter_configs(request)
    return [(ErrorCode(each.error_code), each.error_message) for each in response.responses]


async def replace(node: MetadataNode, kind: int, name: str, **texts: str | None) -> Outcome:
    configs = [legacy.AlterableConfig(name=k.replace("_", "."), value=v) for k, v in texts.items()]
    resource = legacy.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = legacy.AlterConfigsRequest(resources=[resource])
    (result,) = (await node.metadata.controller.alter_configs(request)).responses
    return ErrorCode(result.error_code), result.error_message


FINE: Outcome = (ErrorCode.NONE, None)


@on_loop
async def test_keys_are_set_deleted_appended_and_subtracted() -> None:
    node = await started()
    await node.create("t", cleanup_policy="delete")
    results = await alter(
        node,
        topic(
            "t",
            ("retention.ms", Operation.SET, "9"),
            ("cleanup.policy", Operation.APPEND, "compact"),
            ("segment.ms", Operation.DELETE, None),
        ),
    )
    assert results == [FINE]
    assert node.image.topic_config("t") == {"cleanup.policy": "delete,compact", "retention.ms": "9"}
    await alter(node, topic("t", ("cleanup.policy", Operation.SUBTRACT, "delete")))
    await alter(node, topic("t", ("retention.ms", Operation.DELETE, None)))
    assert node.image.topic_config("t") == {"cleanup.policy": "compact"}


@on_loop
async def test_validate_only_changes_nothing() -> None:
    node = await started()
    await node.create("t")
    before = node.metadata.quorum.next_offset
    good = topic("t", ("retention.ms", Operation.SET, "9"))
    bad = topic("missing", ("retention.ms", Operation.SET, "9"))
    results = await alter(node, good, bad, validate_only=True)
    assert [code for code, _ in results] == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert node.metadata.quorum.next_offset == before


@on_loop
async def test_nothing_is_recorded_for_a_topic_that_stays_as_it_is() -> None:
    node = await started()
    await node.create("t", retention_ms="9")
    before = node.metadata.quorum.next_offset
    assert await alter(node, topic("t", ("retention.ms", Operation.SET, "9"))) == [FINE]
    assert node.metadata.quorum.next_offset == before


@on_loop
async def test_a_broker_is_told_even_what_it_knows() -> None:
    node = await started()
    broker = change(ResourceType.BROKER, "1", ("message.max.bytes", Operation.SET, "2000000"))
    await alter(node, broker)
    before = node.metadata.quorum.next_offset
    await alter(node, broker)
    (record,) = node.records(before)
    assert isinstance(record, ConfigRecord)


@pytest.mark.parametrize(
    ("resource", "code", "message"),
    [
        (
            topic("", ("retention.ms", 0, "1")),
            ErrorCode.INVALID_REQUEST,
            "Default topic resources are not allowed.",
        ),
        (
            topic("no such", ("retention.ms", 0, "1")),
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic name is invalid: 'no such' contains one or more characters other than ASCII "
            "alphanumerics, '.', '_' and '-'",
        ),
        (
            topic("missing", ("retention.ms", 0, "1")),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "The topic 'missing' does not exist.",
        ),
        (topic("t", ("colour", 0, "red")), ErrorCode.INVALID_CONFIG, "Unknown topic config name: colour"),
        (
            topic("t", ("retention.ms", Operation.APPEND, "1")),
            ErrorCode.INVALID_CONFIG,
            "Can't APPEND to key retention.ms because its type is not LIST.",
        ),
        (
            topic("t", ("retention.ms", Operation.SET, "1" * 32_768)),
            ErrorCode.INVALID_CONFIG,
            "The configuration value cannot be added because it exceeds the maximum value size of 32767 "
            "bytes.",
        ),
        (
            change(ResourceType.BROKER, "x", ("message.max.bytes", 0, "1")),
            ErrorCode.INVALID_REQUEST,
            "Unable to parse broker name as a base 10 number.",
        ),
        (
            change(ResourceType.BROKER, "-1", ("message.max.bytes", 0, "1")),
            ErrorCode.INVALID_REQUEST,
            "Invalid negative broker ID.",
        ),
        (
            change(ResourceType.BROKER, "7", ("message.max.bytes", 0, "1")),
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            "No node with id 7 found.",
        ),
        (
            change(ResourceType.BROKER, "1", ("min.insync.replicas", 0, "1")),
            ErrorCode.INVALID_CONFIG,
            "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
        ),
        (
            change(ResourceType.BROKER, "", ("min.insync.replicas", Operation.DELETE, None)),
            ErrorCode.INVALID_CONFIG,
            "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
        ),
        (
            change(ResourceType.GROUP, "", ("consumer.session.timeout.ms", 0, "50000")),
            ErrorCode.INVALID_REQUEST,
            "Default group resources are not allowed.",
        ),
        (
            change(ResourceType.GROUP, "g", ("colour", 0, "red")),
            ErrorCode.INVALID_CONFIG,
            "Unknown group config name: colour",
        ),
        (
            change(ResourceType.CLIENT_METRICS, "", ("interval.ms", 0, "1000")),
            ErrorCode.INVALID_REQUEST,
            "Subscription name can't be empty",
        ),
        (
            change(99, "x", ("a", 0, "b")),
            ErrorCode.UNSUPPORTED_VERSION,
            "Unknown resource type 99.",
        ),
        (
            change(0, "x", ("a", 0, "b")),
            ErrorCode.UNSUPPORTED_VERSION,
            "Unknown resource type 0.",
        ),
        (
            change(ResourceType.BROKER_LOGGER, "1", ("a", 0, "b")),
            ErrorCode.INVALID_REQUEST,
            "Unknown resource type BROKER_LOGGER",
        ),
    ],
)
@on_loop
async def test_what_cannot_be_changed_is_refused_in_kafkas_words(
    resource: incremental.AlterConfigsResource, code: ErrorCode, message: str
) -> None:
    node = await started()
    await node.create("t")
    assert await alter(node, resource) == [(code, message)]


@on_loop
async def test_one_bad_resource_does_not_fail_the_others() -> None:
    node = await started()
    await node.create("t")
    results = await alter(
        node,
        topic("missing", ("retention.ms", Operation.SET, "1")),
        topic("t", ("retention.ms", Operation.SET, "1")),
        change(ResourceType.GROUP, "g", ("consumer.session.timeout.ms", Operation.SET, "50000")),
        change(ResourceType.CLIENT_METRICS, "m", ("interval.ms", Operation.SET, "1000")),
    )
    assert [code for code, _ in results] == [3, 0, 0, 0]
    assert node.image.config(ConfigResource(ResourceType.GROUP, "g")) == {
        "consumer.session.timeout.ms": "50000"
    }
    assert node.image.config(ConfigResource(ResourceType.CLIENT_METRICS, "m")) == {"interval.ms": "1000"}


@on_loop
async def test_a_resource_named_twice_is_not_changed() -> None:
    node = await started()
    await node.create("t")
    one = topic("t", ("retention.ms", Operation.SET, "1"))
    assert await alter(node, one, one, one) == [(ErrorCode.INVALID_REQUEST, "Duplicate resource.")]
    assert node.image.topic_config("t") == {}


@on_loop
async def test_replacing_drops_what_is_not_named() -> None:
    node = await started()
    await node.create("t", retention_ms="1", segment_ms="2")
    assert await replace(node, ResourceType.TOPIC, "t", retention_ms="3", cleanup_policy="compact") == FINE
    assert node.image.topic_config("t") == {"retention.ms": "3", "cleanup.policy": "compact"}
    assert await replace(node, ResourceType.TOPIC, "t") == FINE
    assert node.image.topic_config("t") == {}
    code, _ = await replace(node, ResourceType.TOPIC, "t", retention_ms="x")
    assert code == ErrorCode.INVALID_CONFIG


@on_loop
async def test_replacing_may_not_drop_the_clusters_min_isr() -> None:
    node = await started()
    outcome = await replace(node, ResourceType.BROKER, "", log_retention_ms="1")
    assert outcome == (
        ErrorCode.INVALID_CONFIG,
        "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
    )


@on_loop
async def test_a_change_of_min_isr_clears_eligible_leaders() -> None:
    node = await started()
    await node.create("t")
    before = node.metadata.quorum.next_offset
    await alter(node, topic("t", ("min.insync.replicas", Operation.SET, "2")))
    await alter(node, change(ResourceType.BROKER, "", ("min.insync.replicas", Operation.SET, "2")))
    cleared = [record.topic_name for record in node.records(before) if isinstance(record, ClearElrRecord)]
    assert cleared == ["t", ""]


@on_loop
async def test_run_time_values_of_the_cluster_are_defaults_of_new_topics() -> None:
    node = await started()
    await alter(node, change(ResourceType.BROKER, "", ("log.retention.ms", Operation.SET, "1234")))
    result = await node.create("t")
    told = {entry.name: (entry.value, entry.config_source) for entry in result.configs or []}
    assert told["retention.ms"] == ("1234", 3)


@on_loop
async def test_cordoned_directories_need_their_metadata_version() -> None:
    node = MetadataNode()
    node.format("4.2")
    await node.start()
    resource = change(ResourceType.BROKER, "1", ("cordoned.log.dirs", Operation.SET, "/data"))
    ((code, message),) = await alter(node, resource)
    assert code == ErrorCode.INVALID_CONFIG
    assert message is not None
    assert message.endswith("requires metadata.version >= 4.3-IV0")
