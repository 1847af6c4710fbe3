"""Consumer groups on a small node: topics made up as needed, and clients that do what members have to do."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from headrace.config.alteration import ResourceType
from headrace.errors import ErrorCode, KafkaError
from headrace.groups.client import GroupClient
from headrace.groups.consumer_group import ConsumerGroup
from headrace.groups.consumer_requests import consumer_heartbeat
from headrace.groups.consumer_settings import ConsumerSettings
from headrace.groups.settings import GroupSettings
from headrace.metadata.delta import MetadataDelta
from headrace.protocol.disk_records.cluster_metadata import (
    ConfigRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from headrace.protocol.message import Message
from headrace.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from headrace.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.support_data import NODE, start_node, topic_id_of
from tests.support_groups import GROUP, GroupContext, serving

LATEST = 1
HEARTBEAT_MS = 5_000
SESSION_MS = 45_000
REBALANCE_MS = 60_000
ASSIGNMENT_INTERVAL_MS = 1_000

Owned = dict[str, set[int]]


class ConsumerContext:
    """A coordinator, the topics of a cluster, and requests of the consumer protocol."""

    def __init__(self, groups: GroupContext) -> None:
        self.groups = groups
        self.image = groups.node.services.image

    @property
    def group(self) -> ConsumerGroup:
        found = self.groups.shard.groups.get(GROUP)
        assert isinstance(found, ConsumerGroup)
        return found

    def pass_time(self, milliseconds: int) -> None:
        self.groups.pass_time(milliseconds)

    def change(self, *records: Message) -> None:
        """Change the metadata, as the controller would."""
        delta = MetadataDelta()
        self.image.offset += 1
        for record in records:
            self.image.apply(record, delta)
        self.groups.coordinator.on_new_metadata_image(delta, self.image)

    def create_topic(self, name: str, partitions: int = 3) -> UUID:
        topic_id = topic_id_of(name, self.image.offset % 200 + 1)
        self.change(
            TopicRecord(name=name, topic_id=topic_id),
            *(_partition(topic_id, index) for index in range(partitions)),
        )
        return topic_id

    def add_partition(self, name: str) -> None:
        topic = self.image.topics[name]
        self.change(_partition(topic.id, len(topic.partitions)))

    def delete_topic(self, name: str) -> None:
        self.change(RemoveTopicRecord(topic_id=self.image.topics[name].id))

    def configure(self, **texts: str) -> None:
        """Set configurations of the group."""
        self.change(
            *(
                ConfigRecord(
                    resource_type=ResourceType.GROUP,
                    resource_name=GROUP,
                    name=name.replace("_", "."),
                    value=text,
                )
                for name, text in texts.items()
            )
        )

    def send(
        self, version: int = LATEST, client_id: str = "client", **fields: Any
    ) -> ConsumerGroupHeartbeatResponse:
        """One request as it is."""
        request = ConsumerGroupHeartbeatRequest(**({"group_id": GROUP} | fields))
        client = GroupClient(version, client_id, "/127.0.0.1")
        return consumer_heartbeat(self.groups.coordinator, client, request).result()

    def refusal(self, **fields: Any) -> tuple[int, str | None]:
        """Code and text of a request that is refused, after which nothing was written."""
        before = len(self.groups.written())
        reply = self.send(**fields)
        assert reply.error_code != ErrorCode.NONE, "it was not refused"
        assert len(self.groups.written()) == before
        return reply.error_code, reply.error_message

    def commit(
        self, index: int, *, member_id: str, epoch: int, topic: str = "topic", version: int = 10
    ) -> int:
        """Commit an offset as a member; the error code."""
        request = OffsetCommitRequest(
            group_id=GROUP,
            member_id=member_id,
            generation_id_or_member_epoch=epoch,
            topics=[
                OffsetCommitRequestTopic(
                    name=topic,
                    topic_id=self.image.topics[topic].id,
                    partitions=[OffsetCommitRequestPartition(partition_index=index, committed_offset=1)],
                )
            ],
        )
        written = self.groups.runtime.write(
            0, lambda shard, now_ms: shard.commits.commit(request, version, now_ms)
        )
        error = written.exception()
        if isinstance(error, KafkaError):
            return error.code
        return written.result().topics[0].partitions[0].error_code

    def names(self, partitions: list[TopicPartitions]) -> Owned:
        return {
            self.image.topics_by_id[each.topic_id].name: set(each.partitions)
            for each in partitions
            if each.topic_id in self.image.topics_by_id
        }

    def described(self) -> Any:
        return self.groups.shard.consumers.describe([GROUP])[0]

    def settle(self, *clients: "Client", rounds: int = 12) -> None:
        """Let everybody send heartbeats until the group is stable."""
        for _ in range(rounds):
            for client in clients:
                client.beat()
            epochs = {client.epoch for client in clients}
            if self.group.state_name == "Stable" and epochs == {self.group.epoch}:
                return
            self.pass_time(ASSIGNMENT_INTERVAL_MS)
        raise AssertionError(f"the group is {self.group.state_name} after {rounds} rounds")


class Client:
    """A member of a group that does as it is told: it gives back before it says so, and joins when fenced."""

    def __init__(
        self,
        context: ConsumerContext,
        member_id: str,
        *topics: str,
        regex: str | None = None,
        instance: str | None = None,
        assignor: str | None = None,
        rebalance_ms: int = REBALANCE_MS,
    ) -> None:
        self.context = context
        self.member_id = member_id
        self.topics: list[str] | None = list(topics)
        self.regex = regex
        self.instance = instance
        self.assignor = assignor
        self.rebalance_ms = rebalance_ms
        self.epoch = 0
        self.owned: Owned = {}
        #: Whether it goes on working on what it shall give back.
        self.holds_on = False
        self._due: Owned | None = None
        self._says_all = True

    @property
    def partitions(self) -> set[tuple[str, int]]:
        """What it works on."""
        return {(topic, index) for topic, indexes in self.owned.items() for index in indexes}

    def join(self) -> "Client":
        self._begin_anew()
        self.beat()
        return self

    def _begin_anew(self) -> None:
        self.epoch, self.owned, self._due, self._says_all = 0, {}, None, True

    def subscribe(self, *topics: str, regex: str | None = None) -> None:
        self.topics, self.regex = list(topics), regex
        self._says_all = True
        self.beat()

    def leave(self, epoch: int = -1) -> ConsumerGroupHeartbeatResponse:
        reply = self.context.send(member_id=self.member_id, member_epoch=epoch, instance_id=self.instance)
        self.owned = {}
        return reply

    def beat(self, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """Send a heartbeat, and do what the reply says."""
        if self._due is not None and not self.holds_on:
            self._take(self._due)
        reply = self.context.send(**(self._request() | fields))
        if reply.error_code in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
            self._begin_anew()
            return reply
        assert reply.error_code == ErrorCode.NONE, (reply.error_code, reply.error_message)
        self._says_all = False
        self.epoch = reply.member_epoch
        if reply.assignment is not None:
            self._take(self.context.names(reply.assignment.topic_partitions))
        return reply

    def lose_reply(self) -> None:
        """Send a heartbeat and hear nothing: the next one says everything anew."""
        self.context.send(**self._request())
        self._says_all = True

    def _request(self) -> dict[str, Any]:
        image = self.context.image
        fields: dict[str, Any] = {
            "member_id": self.member_id,
            "member_epoch": self.epoch,
            "instance_id": self.instance,
        }
        owned = [
            TopicPartitions(topic_id=image.topics[topic].id, partitions=sorted(indexes))
            for topic, indexes in self.owned.items()
            if topic in image.topics and indexes
        ]
        if self._says_all:
            return fields | {
                "rebalance_timeout_ms": self.rebalance_ms,
                "subscribed_topic_names": self.topics,
                "subscribed_topic_regex": self.regex,
                "server_assignor": self.assignor,
                "topic_partitions": owned,
            }
        return fields | {"topic_partitions": owned}

    def _take(self, assigned: Owned) -> None:
        self._due = None
        gives_back = any(not indexes <= assigned.get(topic, set()) for topic, indexes in self.owned.items())
        if gives_back and self.holds_on:
            self._due = assigned
        else:
            self.owned = assigned


def _partition(topic_id: UUID, index: int) -> PartitionRecord:
    return PartitionRecord(
        partition_id=index, topic_id=topic_id, replicas=[NODE], isr=[NODE], leader=NODE, leader_epoch=0
    )


@asynccontextmanager
async def consumer_groups(settings: ConsumerSettings | None = None) -> AsyncIterator[ConsumerContext]:
    """A coordinator of consumer groups; at the end its state has to be what its log says."""
    given = GroupSettings(consumer=settings or ConsumerSettings())
    async with serving(await start_node(), given) as groups:
        yield ConsumerContext(groups)
