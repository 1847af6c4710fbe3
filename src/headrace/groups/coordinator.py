"""The group coordinator of a node: finds the shard of a group, and puts requests to it.

What a shard can't be asked, because its partition is elsewhere or still being loaded, is answered here. The
replies are futures; most are done when they are returned."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from headrace.coordinator.runtime import CoordinatorRuntime
from headrace.errors import ErrorCode, KafkaError
from headrace.groups.client import GroupClient
from headrace.groups.group_configs import GroupConfigs
from headrace.groups.group_counters import GroupCounters
from headrace.groups.offset_expiry import DeletedTopic
from headrace.groups.settings import GroupSettings
from headrace.groups.shard import GroupShard
from headrace.metadata.delta import MetadataDelta
from headrace.metadata.image import MetadataImage
from headrace.protocol.messages.delete_groups import DeletableGroupResult
from headrace.protocol.messages.describe_groups import DescribedGroup
from headrace.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from headrace.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from headrace.protocol.messages.leave_group import LeaveGroupResponse, MemberIdentity, MemberResponse
from headrace.protocol.messages.list_groups import ListedGroup
from headrace.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

logger: Final = logging.getLogger("headrace.groups")

T = TypeVar("T")


class GroupCoordinator:
    """All groups whose partitions this node leads."""

    __slots__ = ("configs", "counters", "runtime", "settings")

    def __init__(
        self,
        runtime: CoordinatorRuntime[GroupShard],
        settings: GroupSettings,
        counters: GroupCounters,
        configs: GroupConfigs,
    ) -> None:
        self.runtime = runtime
        self.settings = settings
        self.counters = counters
        self.configs = configs

    # Members of classic groups

    def join(self, client: GroupClient, request: JoinGroupRequest) -> "asyncio.Future[JoinGroupResponse]":
        """The reply comes when everybody has joined, or nobody else is waited for."""
        future: asyncio.Future[JoinGroupResponse] = _new_future()
        settings = self.settings
        if not request.group_id:
            code = ErrorCode.INVALID_GROUP_ID
        elif (
            not settings.session_timeout_ms_min
            <= request.session_timeout_ms
            <= settings.session_timeout_ms_max
        ):
            code = ErrorCode.INVALID_SESSION_TIMEOUT
        else:
            self.runtime.write(
                self.runtime.partition_for(request.group_id),
                lambda shard, now_ms: shard.join(client, request, future, now_ms),
                refuse=lambda error: _answer(future, JoinGroupResponse(error_code=error.code)),
            )
            return future
        future.set_result(JoinGroupResponse(member_id=request.member_id, error_code=code))
        return future

    def sync(self, client: GroupClient, request: SyncGroupRequest) -> "asyncio.Future[SyncGroupResponse]":
        """The reply comes when the leader has brought the assignment."""
        future: asyncio.Future[SyncGroupResponse] = _new_future()
        if not request.group_id:
            future.set_result(SyncGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID))
            return future
        self.runtime.write(
            self.runtime.partition_for(request.group_id),
            lambda shard, now_ms: shard.sync(client, request, future, now_ms),
            refuse=lambda error: _answer(future, SyncGroupResponse(error_code=error.code)),
        )
        return future

    def heartbeat(self, request: HeartbeatRequest) -> "asyncio.Future[HeartbeatResponse]":
        """While groups are loaded nobody knows better, so members are told that all is well."""
        if not request.group_id:
            return _done(HeartbeatResponse(error_code=ErrorCode.INVALID_GROUP_ID))
        return self.runtime.write(
            self.runtime.partition_for(request.group_id),
            lambda shard, now_ms: shard.heartbeat(request, now_ms),
            refuse=_refused_heartbeat,
        )

    def leave(self, group_id: str, members: list[MemberIdentity]) -> "asyncio.Future[LeaveGroupResponse]":
        """Members are taken out one by one."""
        if not group_id:
            return _done(LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID))
        return self.runtime.write(
            self.runtime.partition_for(group_id),
            lambda shard, now_ms: shard.leave(group_id, members, now_ms),
            refuse=lambda error: _refused_leave(members, error),
        )

    # Administration

    async def list_groups(self, states: Sequence[str], types: Sequence[str]) -> list[ListedGroup]:
        """The groups of all partitions that this node leads."""
        found: list[ListedGroup] = []
        for future in self.runtime.read_all(lambda shard, now_ms: shard.list_groups(states, types)):
            try:
                found += await future
            except KafkaError as error:
                if error.code is not ErrorCode.NOT_COORDINATOR:
                    raise
        return found

    async def describe(self, group_ids: Sequence[str], version: int) -> list[DescribedGroup]:
        """Classic groups in detail."""

        def refuse(ids: list[str], error: KafkaError) -> list[DescribedGroup]:
            return [DescribedGroup(group_id=group_id, error_code=error.code) for group_id in ids]

        return await self._of_each_partition(
            group_ids,
            lambda index, ids: self.runtime.read(
                index,
                lambda shard, now_ms: shard.describe(ids, version),
                refuse=lambda error: refuse(ids, error),
            ),
        )

    async def delete(self, group_ids: Sequence[str]) -> list[DeletableGroupResult]:
        """Take groups away."""

        def refuse(ids: list[str], error: KafkaError) -> list[DeletableGroupResult]:
            return [DeletableGroupResult(group_id=group_id, error_code=error.code) for group_id in ids]

        return await self._of_each_partition(
            group_ids,
            lambda index, ids: self.runtime.write(
                index,
                lambda shard, now_ms: shard.delete_groups(ids),
                refuse=lambda error: refuse(ids, error),
            ),
        )

    async def _of_each_partition(
        self, group_ids: Sequence[str], ask: "Callable[[int, list[str]], asyncio.Future[list[T]]]"
    ) -> list[T]:
        by_partition: dict[int, list[str]] = {}
        for group_id in group_ids:
            by_partition.setdefault(self.runtime.partition_for(group_id), []).append(group_id)
        futures = [ask(index, ids) for index, ids in by_partition.items()]
        return [each for future in futures for each in await future]

    # The cluster

    def on_new_metadata_image(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Follow the metadata; offsets of deleted topics go."""
        if delta.configs:
            self.configs.on_change(delta)
        self.runtime.on_new_metadata_image(delta, image)
        if not delta.topics_deleted:
            return
        deleted = [DeletedTopic(topic_id, topic.name) for topic_id, topic in delta.topics_deleted.items()]
        for written in self.runtime.write_all(lambda shard, now_ms: shard.on_topics_deleted(deleted)):
            written.add_done_callback(_log_failed_deletion)


def _log_failed_deletion(written: "asyncio.Future[None]") -> None:
    error = None if written.cancelled() else written.exception()
    if error is not None and not _is_elsewhere(error):
        logger.error("offsets of deleted topics were not deleted: %s", error)


def _is_elsewhere(error: BaseException) -> bool:
    return isinstance(error, KafkaError) and error.code is ErrorCode.NOT_COORDINATOR


def _refused_heartbeat(error: KafkaError) -> HeartbeatResponse:
    is_loading = error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return HeartbeatResponse(error_code=ErrorCode.NONE if is_loading else error.code)


def _refused_leave(members: list[MemberIdentity], error: KafkaError) -> LeaveGroupResponse:
    if error.code is not ErrorCode.UNKNOWN_MEMBER_ID:
        return LeaveGroupResponse(error_code=error.code)
    return LeaveGroupResponse(
        members=[
            MemberResponse(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                error_code=ErrorCode.UNKNOWN_MEMBER_ID,
            )
            for member in members
        ]
    )


def _new_future() -> "asyncio.Future[T]":
    return asyncio.get_running_loop().create_future()


def _done(reply: T) -> "asyncio.Future[T]":
    future: asyncio.Future[T] = _new_future()
    future.set_result(reply)
    return future


def _answer(future: "asyncio.Future[T]", reply: T) -> None:
    """The operation failed as a whole; part of it may have been answered before."""
    if not future.done():
        future.set_result(reply)
