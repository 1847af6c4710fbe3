"""A group coordinator on a small node whose clock stands still: requests in, replies and records out."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from headrace.coordinator.hosted_shard import Producer, ShardSettings
from headrace.coordinator.rebuild import Difference, Rebuilding, differences
from headrace.coordinator.runtime import CoordinatorRuntime
from headrace.coordinator.shard import ShardContext
from headrace.errors import KafkaError
from headrace.groups.classic_group import ClassicGroup
from headrace.groups.client import GroupClient
from headrace.groups.coordinator import GroupCoordinator
from headrace.groups.group_configs import GroupConfigs
from headrace.groups.group_counters import GroupCounters
from headrace.groups.settings import GroupSettings
from headrace.groups.shard import GroupShard
from headrace.protocol.message import Message
from headrace.protocol.messages.heartbeat import HeartbeatRequest
from headrace.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from headrace.protocol.messages.leave_group import LeaveGroupResponse, MemberIdentity
from headrace.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from headrace.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from headrace.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from headrace.protocol.prefixed import GROUP_LOG
from headrace.records.batch import batches
from headrace.records.reader import read_records
from headrace.testing.entropy import SeededEntropy
from tests.answers.group_requests import subscription
from tests.support_data import NODE, NOW_MS, DataNode, start_node

TOPIC = "__consumer_offsets"
GROUP = "group"
SESSION_MS = 10_000
REBALANCE_MS = 60_000
INITIAL_DELAY_MS = 3_000
LATEST_JOIN = 9

Joining = asyncio.Future[JoinGroupResponse]
Syncing = asyncio.Future[SyncGroupResponse]


class GroupContext:
    """Partition 0 of the groups' topic, and shortcuts for what tests do all the time."""

    def __init__(self, node: DataNode, settings: GroupSettings | None = None) -> None:
        self.node = node
        self.settings = settings or GroupSettings()
        self.counters = GroupCounters()
        self.entropy = SeededEntropy()
        self.configs = GroupConfigs(node.services.image, lambda: node.services.config)
        self.runtime = CoordinatorRuntime(
            TOPIC,
            self.make_shard,
            ShardSettings(GROUP_LOG),
            node.replicas,
            node.services.image,
            node.clock,
            1,
        )
        self.coordinator = GroupCoordinator(self.runtime, self.settings, self.counters, self.configs)

    def make_shard(self, context: ShardContext) -> GroupShard:
        return GroupShard(context, self.settings, self.entropy, self.counters, self.configs)

    @property
    def shard(self) -> GroupShard:
        return self.runtime.shards[0].active()

    def group(self, group_id: str = GROUP) -> ClassicGroup:
        return self.shard.groups.classic(group_id)

    def pass_time(self, milliseconds: int) -> None:
        """Let time pass, second by second, so that every timer fires about when it should."""
        while milliseconds > 0:
            step = min(milliseconds, 1_000)
            self.node.clock.advance(step)
            self.runtime.timers.fire_due()
            milliseconds -= step

    async def loaded(self) -> None:
        while self.runtime._loads:
            await asyncio.wait(self.runtime._loads)

    async def differences(self) -> list[Difference]:
        """Where the state is not what the log says."""
        node = self.node
        return await differences(
            self.runtime, Rebuilding(self.make_shard, GROUP_LOG, node.services.image, node.clock)
        )

    def written(self) -> list[tuple[Message, Message | None]]:
        """Every record of the partition."""
        found = self.node.partition(TOPIC).leader_log.read(0, 1 << 24).records
        records: list[tuple[Message, Message | None]] = []
        for batch in batches(b"" if found is None else found.read()):
            if batch.is_control:
                continue
            for record in read_records(batch):
                key = GROUP_LOG.decode_key(record.key or b"")
                value = None if record.value is None else GROUP_LOG.decode_value(key, record.value)[0]
                records.append((key, value))
        return records

    # Members

    def begin_join(
        self,
        member_id: str = "",
        *,
        group_id: str = GROUP,
        instance: str | None = None,
        protocols: Mapping[str, bytes] | None = None,
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        version: int = LATEST_JOIN,
    ) -> Joining:
        """A JoinGroup whose reply may take its time."""
        given = {"range": subscription("topic")} if protocols is None else protocols
        request = JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=data) for name, data in given.items()],
        )
        return self.coordinator.join(GroupClient(version, "client", "/127.0.0.1"), request)

    def new_member(self, **fields: Any) -> Joining:
        """Somebody who joins with the id that it was told."""
        return self.begin_join(self.begin_join(**fields).result().member_id, **fields)

    def begin_sync(
        self,
        member_id: str,
        generation: int,
        assignments: Mapping[str, bytes] | None = None,
        *,
        group_id: str = GROUP,
        instance: str | None = None,
    ) -> Syncing:
        request = SyncGroupRequest(
            group_id=group_id,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
            assignments=[
                SyncGroupRequestAssignment(member_id=name, assignment=data)
                for name, data in (assignments or {}).items()
            ],
        )
        return self.coordinator.sync(GroupClient(5, "client", "/127.0.0.1"), request)

    def stable(self, count: int = 1, **fields: Any) -> list[JoinGroupResponse]:
        """A new group whose members all have an assignment, the leader first."""
        joins = [self.new_member(**fields) for _ in range(count)]
        while not all(join.done() for join in joins):
            self.pass_time(500)
        replies = sorted((join.result() for join in joins), key=lambda each: each.member_id != each.leader)
        leader = replies[0]
        assignments = {reply.member_id: b"of " + reply.member_id.encode() for reply in replies}
        group_id = fields.get("group_id", GROUP)
        for reply in replies:
            given = assignments if reply is leader else None
            self.begin_sync(reply.member_id, leader.generation_id, given, group_id=group_id)
        assert self.group(group_id).state_name == "Stable"
        return replies

    def heartbeat(
        self, member_id: str, generation: int, *, group_id: str = GROUP, instance: str | None = None
    ) -> int:
        request = HeartbeatRequest(
            group_id=group_id, generation_id=generation, member_id=member_id, group_instance_id=instance
        )
        return self.coordinator.heartbeat(request).result().error_code

    def leave(self, *member_ids: str, group_id: str = GROUP) -> LeaveGroupResponse:
        members = [MemberIdentity(member_id=member_id) for member_id in member_ids]
        return self.coordinator.leave(group_id, members).result()

    # Offsets

    def commit(
        self,
        offsets: Mapping[int, int],
        *,
        topic: str = "topic",
        group_id: str = GROUP,
        member_id: str = "",
        generation: int = -1,
        metadata: str = "",
        retention_ms: int = -1,
        version: int = 8,
    ) -> int:
        """Commit offsets by partition; the first error, or 0."""
        partitions = [
            OffsetCommitRequestPartition(
                partition_index=index, committed_offset=offset, committed_metadata=metadata
            )
            for index, offset in offsets.items()
        ]
        request = OffsetCommitRequest(
            group_id=group_id,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            retention_time_ms=retention_ms,
            topics=[OffsetCommitRequestTopic(name=topic, partitions=partitions)],
        )
        try:
            reply = self.runtime.write(
                0, lambda shard, now_ms: shard.commits.commit(request, version, now_ms)
            ).result()
        except KafkaError as error:
            return error.code
        return max(part.error_code for each in reply.topics for part in each.partitions)

    def commit_in_transaction(
        self, producer_id: int, offsets: Mapping[int, int], *, topic: str = "topic", group_id: str = GROUP
    ) -> None:
        log = self.node.partition(TOPIC).leader_log
        guard = log.start_verification(producer_id, 0, 0, False, NOW_MS)
        request = TxnOffsetCommitRequest(
            group_id=group_id,
            producer_id=producer_id,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
                        for index, offset in offsets.items()
                    ],
                )
            ],
        )
        self.runtime.write(
            0,
            lambda shard, now_ms: shard.commits.commit_in_transaction(request, 3, now_ms),
            producer=Producer(producer_id, 0, guard),
        ).result()

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        self.runtime.complete_transaction(0, producer_id, 0, committed, 0, 1).result()

    def fetch(
        self, *partitions: int, topic: str = "topic", group_id: str = GROUP, stable: bool = False
    ) -> list[tuple[int, int]]:
        """Offset and error of partitions."""
        topics = [OffsetFetchRequestTopics(name=topic, partition_indexes=list(partitions))]
        request = OffsetFetchRequestGroup(group_id=group_id, topics=topics)
        reply = self.runtime.read(0, lambda shard, now_ms: shard.fetches.fetch(request, stable)).result()
        return [(each.committed_offset, each.error_code) for each in reply.topics[0].partitions]


@asynccontextmanager
async def serving(
    node: DataNode | None = None, settings: GroupSettings | None = None, **assignment: Any
) -> AsyncIterator[GroupContext]:
    """A coordinator that serves; at the end its state has to be what its log says."""
    context = GroupContext(node or await start_node(), settings)
    context.runtime.start()
    if context.node.replicas.get(TOPIC, 0) is None or assignment:
        context.node.assign(TOPIC, 0, **({"leader": NODE} | assignment))
    await context.loaded()
    yield context
    assert not await context.differences()
    await context.runtime.close()
