"""ConsumerGroupHeartbeat and ConsumerGroupDescribe as handlers: where they are off, and what they answer."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from headrace.api import k68_consumer_group_heartbeat, k69_consumer_group_describe
from headrace.api.authorized_operations import GROUP_OPERATIONS
from headrace.api.services import Api
from headrace.config.node import NodeConfig
from headrace.errors import ErrorCode, HeadraceError, KafkaError
from headrace.groups.consumer_settings import ConsumerSettings, consumer_settings
from headrace.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from headrace.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from headrace.server.groups import start_groups
from headrace.testing.entropy import SeededEntropy
from tests.support_data import NODE, PROPERTIES, DataNode, start_node
from tests.support_log import on_loop

OFFSETS = "__consumer_offsets"
HEARTBEAT, DESCRIBE = k68_consumer_group_heartbeat.API, k69_consumer_group_describe.API
JOINING = ConsumerGroupHeartbeatRequest(
    group_id="group", member_id="one", rebalance_timeout_ms=1, subscribed_topic_names=[], topic_partitions=[]
)


@asynccontextmanager
async def group_node(is_led: bool = True, **properties: str) -> AsyncIterator[DataNode]:
    """A node with one partition of groups, and the consumer protocol switched on."""
    node = await start_node()
    node.services.config = NodeConfig(
        PROPERTIES | {"offsets.topic.num.partitions": "1"} | _with_dots(properties)
    )
    node.services.image.features["group.version"] = 1
    async with AsyncExitStack() as stack:
        start_groups(node.services, SeededEntropy(), stack)
        if is_led:
            node.assign(OFFSETS, 0, leader=NODE)
        yield node


def _with_dots(properties: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "."): value for name, value in properties.items()}


async def refusal(node: DataNode, api: Api, request: Any) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        await node.ask(api, request)
    return caught.value.code


@on_loop
async def test_a_member_joins_and_its_group_is_described() -> None:
    async with group_node() as node:
        reply = await node.ask(HEARTBEAT, JOINING)
        assert (reply.error_code, reply.member_id, reply.member_epoch) == (ErrorCode.NONE, "one", 1)
        request = ConsumerGroupDescribeRequest(
            group_ids=["", "group", "none"], include_authorized_operations=True
        )
        nameless, group, missing = (await node.ask(DESCRIBE, request)).groups
        assert (nameless.group_id, nameless.error_code) == ("", ErrorCode.INVALID_GROUP_ID)
        assert (group.group_state, group.authorized_operations) == ("Stable", GROUP_OPERATIONS)
        assert [member.member_id for member in group.members] == ["one"]
        assert (missing.group_id, missing.error_code) == ("none", ErrorCode.GROUP_ID_NOT_FOUND)
        assert missing.authorized_operations != GROUP_OPERATIONS


@pytest.mark.parametrize("api", [HEARTBEAT, DESCRIBE], ids=lambda api: api.name)
@on_loop
async def test_without_the_feature_the_protocol_is_off(api: Api) -> None:
    request = JOINING if api is HEARTBEAT else ConsumerGroupDescribeRequest(group_ids=["group"])
    async with group_node() as node:
        node.services.image.features["group.version"] = 0
        assert await refusal(node, api, request) is ErrorCode.UNSUPPORTED_VERSION
    async with group_node(group_coordinator_rebalance_protocols="classic") as node:
        assert await refusal(node, api, request) is ErrorCode.UNSUPPORTED_VERSION


@on_loop
async def test_whoever_is_not_the_coordinator_says_so() -> None:
    async with group_node(is_led=False) as node:
        reply = await node.ask(HEARTBEAT, JOINING)
        assert (reply.error_code, reply.error_message) == (ErrorCode.NOT_COORDINATOR, None)
        (group,) = (await node.ask(DESCRIBE, ConsumerGroupDescribeRequest(group_ids=["group"]))).groups
        assert group.error_code == ErrorCode.NOT_COORDINATOR
        node.services.groups = None
        assert await refusal(node, HEARTBEAT, JOINING) is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_failures_are_told_in_the_form_of_the_reply() -> None:
    error = KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    beat = k68_consumer_group_heartbeat.error_response(JOINING, 1, error)
    assert beat.error_code == ErrorCode.UNSUPPORTED_VERSION
    request = ConsumerGroupDescribeRequest(group_ids=["a", "b"])
    described = k69_consumer_group_describe.error_response(request, 1, error)
    assert [(each.group_id, each.error_code) for each in described.groups] == [("a", 35), ("b", 35)]


@pytest.mark.parametrize(
    ("policy", "ways"),
    [
        ("bidirectional", (True, True)),
        ("UPGRADE", (True, False)),
        ("Downgrade", (False, True)),
        ("disabled", (False, False)),
    ],
)
def test_the_policy_says_which_ways_groups_may_go(policy: str, ways: tuple[bool, bool]) -> None:
    settings = consumer_settings(NodeConfig(PROPERTIES | {"group.consumer.migration.policy": policy}))
    assert (settings.can_upgrade, settings.can_downgrade) == ways


def test_assignors_are_configured_by_name_or_by_kafkas_classes() -> None:
    def assignors(text: str) -> tuple[str, ...]:
        return consumer_settings(NodeConfig(PROPERTIES | {"group.consumer.assignors": text})).assignors

    assert consumer_settings(NodeConfig(PROPERTIES)) == ConsumerSettings()
    assert assignors("range") == ("range",)
    package = "org.apache.kafka.coordinator.group.assignor"
    assert assignors(f"{package}.RangeAssignor,{package}.UniformAssignor") == ("range", "uniform")
    with pytest.raises(HeadraceError, match="there are uniform and range"):
        assignors("mine")
