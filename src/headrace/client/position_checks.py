"""Whether a reader's positions still mean what they meant: same topic, same history, still in the log.

What is no longer so is raised, never skipped: a topic created again, a log cut back, a position deleted.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from headrace.client.cluster import Cluster
from headrace.client.errors import (
    BrokerRefused,
    ConnectionLost,
    CorruptRecords,
    NoLeader,
    PositionDiverged,
    PositionOutOfRange,
    RequestTimedOut,
    TopicRecreated,
    UnknownTopics,
    Unreachable,
    UnsupportedByBroker,
)
from headrace.client.fetch_session import LAST_VERSION_BY_NAME
from headrace.client.links import Lane
from headrace.client.metadata import NO_NODE, Leader
from headrace.client.offsets import EARLIEST, EARLIEST_LOCAL, LATEST, list_offsets
from headrace.client.read_errors import Reaction
from headrace.client.read_state import ReadState
from headrace.errors import HeadraceError
from headrace.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from headrace.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from headrace.types import NO_LEADER_EPOCH, TopicPartition

_CONSUMER: Final = -1
#: The epoch of a fetch that belongs to no session.
NO_SESSION: Final = -1
#: How often a leader may deny a position that it has when asked for its range.
_RANGE_DOUBTS_MAX: Final = 3


class PositionChecks:
    """Checks for one reader. `give_up_ms` is how long a partition may be in trouble; None for ever."""

    def __init__(self, cluster: Cluster, lane: Lane, give_up_ms: int | None) -> None:
        self._cluster = cluster
        self._lane = lane
        self._give_up_ms = give_up_ms
        self._loop = asyncio.get_running_loop()
        self.last_trouble: dict[TopicPartition, HeadraceError] = {}

    def note_trouble(self, state: ReadState, code: int) -> None:
        """Remember what a broker said, to be told if it does not pass."""
        self.last_trouble[state.partition] = BrokerRefused(code, None, f"fetching {state.partition}")

    def refresh_failed(self, states: Iterable[ReadState], error: HeadraceError) -> None:
        """Nothing could be learnt about the topics."""
        for state in states:
            if isinstance(error, UnknownTopics) and state.partition.topic not in error.names:
                continue
            if state.failing_since is not None:
                self.last_trouble[state.partition] = error

    def look_around(self, states: Iterable[ReadState]) -> None:
        """Raise what cannot be got over: another topic of the same name, or trouble for too long."""
        topics = self._cluster.metadata.topics
        now = self._loop.time()
        for state in states:
            if state.is_fetched:
                continue
            topic = topics.get(state.partition.topic)
            if topic is not None and topic.has_id and state.topic_id.int and topic.topic_id != state.topic_id:
                raise TopicRecreated(topic.name, state.topic_id, topic.topic_id)
            if state.failing_since is not None:
                self._give_up_if_due(state, int((now - state.failing_since) * 1000))
            elif self.last_trouble:
                # What has passed says nothing about the trouble that may come.
                self.last_trouble.pop(state.partition, None)

    def _give_up_if_due(self, state: ReadState, waited_ms: int) -> None:
        trouble = self.last_trouble.get(state.partition)
        if isinstance(trouble, UnknownTopics):
            if state.topic_id.int:
                raise TopicRecreated(state.partition.topic, state.topic_id, None)
            raise trouble
        if self._give_up_ms is not None and waited_ms >= self._give_up_ms:
            raise trouble or NoLeader(*state.partition, waited_ms, "it is being elected")

    # The same history

    async def on_same_history(self, node_id: int, states: Sequence[ReadState]) -> list[ReadState]:
        """Those whose position is on their leader's history; PositionDiverged for one that is certainly not.

        A leader of a new epoch may have lost the end of the log. It is asked where the epoch of what was read
        last ends with it: below the position, what was read is no longer there.
        """
        certain = []
        doubtful: dict[TopicPartition, tuple[ReadState, Leader]] = {}
        for state in states:
            leader = self._cluster.metadata.leader_of(*state.partition)
            if leader is None or leader.epoch in (NO_LEADER_EPOCH, state.checked_epoch):
                certain.append(state)
            elif state.epoch == NO_LEADER_EPOCH or state.replica != NO_NODE:
                certain.append(state)
                if state.epoch == NO_LEADER_EPOCH:
                    state.checked_epoch = leader.epoch
            else:
                doubtful[state.partition] = (state, leader)
        if doubtful:
            certain += await self._ask_history(node_id, doubtful)
        return certain

    async def _ask_history(
        self, node_id: int, doubtful: dict[TopicPartition, tuple[ReadState, Leader]]
    ) -> list[ReadState]:
        topics: dict[str, list[OffsetForLeaderPartition]] = defaultdict(list)
        for (name, partition), (state, leader) in doubtful.items():
            topics[name].append(
                OffsetForLeaderPartition(
                    partition=partition, current_leader_epoch=leader.epoch, leader_epoch=state.epoch
                )
            )
        request = OffsetForLeaderEpochRequest(
            replica_id=_CONSUMER,
            topics=[OffsetForLeaderTopic(topic=name, partitions=asked) for name, asked in topics.items()],
        )
        try:
            reply: OffsetForLeaderEpochResponse = await self._cluster.send(node_id, request, lane=self._lane)
        except (ConnectionLost, RequestTimedOut, Unreachable):
            for state, _ in doubtful.values():
                self._cluster.stale(state.partition.topic)
            return []
        certain = []
        for topic in reply.topics:
            for answer in topic.partitions:
                found = doubtful.get(TopicPartition(topic.topic, answer.partition))
                if found is not None and self._is_same(*found, answer):
                    certain.append(found[0])
        return certain

    def _is_same(self, state: ReadState, leader: Leader, answer: EpochEndOffset) -> bool:
        if answer.error_code:
            self.note_trouble(state, answer.error_code)
            self._cluster.stale(state.partition.topic)
            return False
        if answer.end_offset < state.fetch_from or answer.leader_epoch == NO_LEADER_EPOCH:
            # An epoch that the leader has never heard of has no end in its history: -1.
            raise PositionDiverged(
                state.partition, state.fetch_from, state.epoch, answer.end_offset, answer.leader_epoch
            )
        state.checked_epoch = leader.epoch
        return True

    # Still in the log

    async def judge(self, state: ReadState, code: int, reaction: Reaction) -> None:
        """Raise what an error that does not pass by itself means; return if it did pass."""
        if reaction is Reaction.CHECK_RANGE:
            found = await self._range(state)
            if found is None:
                return
            earliest, latest = found
            state.range_doubts += 1
            if not earliest <= state.fetch_from <= latest or state.range_doubts > _RANGE_DOUBTS_MAX:
                raise PositionOutOfRange(state.partition, state.fetch_from, earliest, latest)
            return
        if reaction is Reaction.CORRUPT:
            raise CorruptRecords(state.partition, state.fetch_from, "the broker found its log damaged there")
        raise BrokerRefused(code, None, f"fetching {state.partition} at offset {state.fetch_from}")

    async def _range(self, state: ReadState) -> tuple[int, int] | None:
        earliest = await self._offset_at(state, EARLIEST)
        latest = None if earliest is None else await self._offset_at(state, LATEST)
        return None if earliest is None or latest is None else (earliest, latest)

    async def _offset_at(self, state: ReadState, which: int) -> int | None:
        """An offset of the partition; None, and trouble noted, while nobody can tell."""
        try:
            found = await list_offsets(self._cluster, {state.partition: which}, isolation="read_uncommitted")
        except (ConnectionLost, NoLeader, RequestTimedOut, UnknownTopics, Unreachable) as error:
            self.last_trouble[state.partition] = error
            return None
        except BrokerRefused as refusal:
            if not refusal.is_retriable:
                raise
            self.last_trouble[state.partition] = refusal
            return None
        return found[state.partition].offset

    async def end_of_gap(self, node_id: int, state: ReadState, isolation_level: int) -> int | None:
        """Where the readable part of the log ends, if there is nothing left between the position and that.

        Compaction may leave nothing of the last records. That nothing came is no proof: a broker may hold
        back data to slow its clients down, and what lies in remote storage may just not have come yet. So it
        is asked for this partition alone, and where its own disk begins.
        """
        if state.until is None or state.is_fetched or state.replica != NO_NODE:
            return None
        if state.fetch_from >= state.readable_end:
            return None
        end = await self._end_if_nothing(node_id, state, isolation_level)
        if end is None or end <= state.fetch_from:
            return None
        try:
            local = await self._offset_at(state, EARLIEST_LOCAL)
        except UnsupportedByBroker:
            # A broker that does not know the question has nothing but its own disk.
            local = state.fetch_from
        if local is None or local > state.fetch_from:
            return None
        return min(end, state.until)

    async def _end_if_nothing(self, node_id: int, state: ReadState, isolation_level: int) -> int | None:
        asked = FetchPartition(
            partition=state.partition.partition,
            fetch_offset=state.fetch_from,
            partition_max_bytes=self._cluster.config.max_partition_fetch_bytes,
        )
        topic = FetchTopic(topic=state.partition.topic, topic_id=state.topic_id, partitions=[asked])
        request = FetchRequest(isolation_level=isolation_level, session_epoch=NO_SESSION, topics=[topic])
        try:
            reply: FetchResponse = await self._cluster.send(
                node_id,
                request,
                lane=self._lane,
                max_version=None if state.topic_id.int else LAST_VERSION_BY_NAME,
            )
        except (ConnectionLost, RequestTimedOut, Unreachable):
            return None
        found = [data for topic in reply.responses for data in topic.partitions]
        if reply.error_code or reply.throttle_time_ms or len(found) != 1:
            return None
        (data,) = found
        if data.error_code or data.records or data.preferred_read_replica != NO_NODE:
            return None
        return data.last_stable_offset if isolation_level else data.high_watermark
