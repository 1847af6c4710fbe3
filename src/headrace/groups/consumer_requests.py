"""Requests of the consumer protocol: checked in themselves, and put to the shard that has the group."""

import asyncio
from collections.abc import Sequence
from typing import Final

from headrace.errors import ErrorCode, KafkaError
from headrace.groups.client import GroupClient
from headrace.groups.consumer_member import JOINING_EPOCH, LEAVING_EPOCH, LEAVING_STATIC_EPOCH
from headrace.groups.coordinator import GroupCoordinator
from headrace.protocol.messages.consumer_group_describe import DescribedGroup
from headrace.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

#: From here on, members make their ids up themselves.
_OWN_ID_SINCE: Final = 1
_NO_TIMEOUT: Final = -1


def consumer_heartbeat(
    coordinator: GroupCoordinator, client: GroupClient, request: ConsumerGroupHeartbeatRequest
) -> "asyncio.Future[ConsumerGroupHeartbeatResponse]":
    """The reply of the shard, or what is wrong with the request."""
    try:
        check_heartbeat(request, client.version, coordinator.settings.consumer.assignors)
    except KafkaError as error:
        future: asyncio.Future[ConsumerGroupHeartbeatResponse] = asyncio.get_running_loop().create_future()
        future.set_result(refused(error))
        return future
    runtime = coordinator.runtime
    return runtime.write(
        runtime.partition_for(request.group_id),
        lambda shard, now_ms: shard.consumers.heartbeat(client, request, now_ms),
        refuse=refused,
    )


async def describe_consumer_groups(
    coordinator: GroupCoordinator, group_ids: Sequence[str]
) -> list[DescribedGroup]:
    """Groups in detail, those without a name first."""
    runtime = coordinator.runtime
    by_partition: dict[int, list[str]] = {}
    for group_id in filter(None, group_ids):
        by_partition.setdefault(runtime.partition_for(group_id), []).append(group_id)
    futures = [_describe(coordinator, index, ids) for index, ids in by_partition.items()]
    nameless = sum(not group_id for group_id in group_ids)
    found = [DescribedGroup(error_code=ErrorCode.INVALID_GROUP_ID) for _ in range(nameless)]
    for future in futures:
        found += await future
    return found


def _describe(
    coordinator: GroupCoordinator, index: int, group_ids: list[str]
) -> "asyncio.Future[list[DescribedGroup]]":
    return coordinator.runtime.read(
        index,
        lambda shard, now_ms: shard.consumers.describe(group_ids),
        refuse=lambda error: [
            DescribedGroup(group_id=group_id, error_code=error.code) for group_id in group_ids
        ],
    )


def refused(error: KafkaError) -> ConsumerGroupHeartbeatResponse:
    """The reply to a request that leads nowhere."""
    return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message or None)


def check_heartbeat(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Sequence[str]) -> None:
    """Refuse a request that makes no sense, whatever the group is like."""
    epoch = request.member_epoch
    needs_id = version >= _OWN_ID_SINCE or epoch > JOINING_EPOCH or epoch == LEAVING_EPOCH
    if needs_id and not request.member_id:
        raise _invalid("MemberId can't be empty.")
    if not request.group_id:
        raise _invalid("GroupId can't be empty.")
    if request.instance_id == "":
        raise _invalid("InstanceId can't be empty.")
    if request.rack_id == "":
        raise _invalid("RackId can't be empty.")
    if epoch == JOINING_EPOCH:
        _check_joining(request)
    elif epoch == LEAVING_STATIC_EPOCH:
        if request.instance_id is None:
            raise _invalid("InstanceId can't be null.")
    elif epoch < LEAVING_STATIC_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: "
            f"{', '.join(assignors)}.",
        )


def _check_joining(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == _NO_TIMEOUT:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or request.topic_partitions:
        raise _invalid("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise _invalid(
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
        )


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
