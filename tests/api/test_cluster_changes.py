"""Features, registrations, the quorum and run-time configuration through a real controller."""

import asyncio

import pytest

from headrace.api.k55_describe_quorum import API as QUORUM
from headrace.api.k57_update_features import API as FEATURES
from headrace.config.alteration import Operation, ResourceType
from headrace.config.node import NodeConfig
from headrace.errors import ErrorCode
from headrace.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from headrace.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
)
from headrace.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from headrace.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from headrace.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from tests.support_admin import spoken_versions
from tests.support_cluster import Cluster, running_cluster


async def set_broker_key(
    cluster: Cluster, name: str, key: str, operation: Operation, value: str | None
) -> int:
    config = AlterableConfig(name=key, config_operation=operation, value=value)
    resource = AlterConfigsResource(resource_type=ResourceType.BROKER, resource_name=name, configs=[config])
    request = IncrementalAlterConfigsRequest(resources=[resource])
    reply = await cluster.ask(request, IncrementalAlterConfigsResponse, 1)
    return reply.responses[0].error_code


def test_a_brokers_key_takes_effect_without_restart_and_goes_back() -> None:
    async def scenario() -> None:
        async with running_cluster() as cluster:
            services = cluster.services
            seen: list[tuple[NodeConfig, NodeConfig]] = []
            services.on_config_change.append(lambda old, new: seen.append((old, new)))
            static = services.config
            assert await set_broker_key(cluster, "", "log.retention.ms", Operation.SET, "60000") == 0
            assert services.config.log_retention_ms == 60_000
            assert await set_broker_key(cluster, "1", "log.retention.ms", Operation.SET, "30000") == 0
            assert services.config.log_retention_ms == 30_000
            assert services.static_config is static
            assert await set_broker_key(cluster, "1", "log.retention.ms", Operation.DELETE, None) == 0
            assert services.config.log_retention_ms == 60_000
            assert [new.log_retention_ms for _, new in seen] == [60_000, 30_000, 60_000]

    asyncio.run(scenario())


def test_a_part_that_cannot_follow_a_change_does_not_stop_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        async with running_cluster() as cluster:
            seen: list[int] = []

            def fail(old: NodeConfig, new: NodeConfig) -> None:
                raise OSError("no")

            cluster.services.on_config_change += [fail, lambda old, new: seen.append(new.log_retention_ms)]
            assert await set_broker_key(cluster, "", "log.retention.ms", Operation.SET, "60000") == 0
            assert seen == [60_000]

    asyncio.run(scenario())
    assert "could not be followed" in caplog.text


def test_sources_stay_apart_after_a_change() -> None:
    async def scenario() -> None:
        async with running_cluster({"log.retention.ms": "1000"}) as cluster:
            await set_broker_key(cluster, "", "log.retention.ms", Operation.SET, "60000")
            resource = DescribeConfigsResource(
                resource_type=ResourceType.BROKER, resource_name="1", configuration_keys=["log.retention.ms"]
            )
            request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
            reply = await cluster.ask(request, DescribeConfigsResponse, 4)
            (entry,) = reply.results[0].configs
            told = [(each.name, each.value, each.source) for each in entry.synonyms]
            assert told[:2] == [("log.retention.ms", "60000", 3), ("log.retention.ms", "1000", 4)]

    asyncio.run(scenario())


@pytest.mark.parametrize("version", spoken_versions(QUORUM))
def test_the_quorum_is_described(version: int) -> None:
    async def scenario() -> None:
        async with running_cluster() as cluster:
            request = DescribeQuorumRequest(
                topics=[
                    DescribeQuorumRequestTopicData(
                        topic_name="__cluster_metadata",
                        partitions=[DescribeQuorumRequestPartitionData(partition_index=0)],
                    )
                ]
            )
            reply = await cluster.ask(request, DescribeQuorumResponse, version)
            (partition,) = reply.topics[0].partitions
            assert (reply.error_code, partition.error_code, partition.leader_id) == (0, 0, 1)
            assert [voter.replica_id for voter in partition.current_voters] == [1]
            assert [node.node_id for node in reply.nodes] == ([1] if version >= 2 else [])

    asyncio.run(scenario())


@pytest.mark.parametrize("version", spoken_versions(FEATURES))
def test_a_feature_is_changed_or_the_reason_told(version: int) -> None:
    async def scenario() -> None:
        async with running_cluster() as cluster:
            bad = FeatureUpdateKey(feature="metadata.version", max_version_level=99)
            reply = await cluster.ask(
                UpdateFeaturesRequest(feature_updates=[bad]), UpdateFeaturesResponse, version
            )
            assert reply.error_code == ErrorCode.INVALID_UPDATE_VERSION
            same = FeatureUpdateKey(feature="group.version", max_version_level=1)
            reply = await cluster.ask(
                UpdateFeaturesRequest(feature_updates=[same]), UpdateFeaturesResponse, version
            )
            assert reply.error_code == 0

    asyncio.run(scenario())


def test_a_broker_is_forgotten_or_the_reason_told() -> None:
    async def scenario() -> None:
        async with running_cluster() as cluster:
            request = UnregisterBrokerRequest(broker_id=55)
            reply = await cluster.ask(request, UnregisterBrokerResponse, 0)
            assert reply.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
            assert reply.error_message == "Broker ID 55 is not currently registered"
            reply = await cluster.ask(UnregisterBrokerRequest(broker_id=1), UnregisterBrokerResponse, 0)
            assert reply.error_code == 0
            assert cluster.services.image.brokers == {}

    asyncio.run(scenario())
