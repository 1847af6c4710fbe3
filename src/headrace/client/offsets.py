"""Where partitions begin and end, and which offset a time has: ListOffsets to all leaders at once.

Leaders that have moved are found again; what a broker refuses for good is raised with the partition's name.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from headrace.client.cluster import Cluster
from headrace.client.config import READ_COMMITTED
from headrace.client.errors import (
    BrokerRefused,
    ConnectionLost,
    RequestTimedOut,
    Unreachable,
    is_retriable,
)
from headrace.client.metadata import Leader
from headrace.client.retrying import Patience
from headrace.errors import ErrorCode
from headrace.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from headrace.types import TopicPartition

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4

NOT_FOUND: Final = -1
_CONSUMER: Final = -1
#: The first version in which a broker can be asked for these.
_VERSION_OF: Final = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8}


class FoundOffset(NamedTuple):
    """An offset, the time and the leader epoch of its record; -1 for what there is not.

    An offset of -1 says that no record is as late as the time that was asked for. Where the start or end of a
    partition was asked for, there is no time.
    """

    offset: int
    timestamp: int
    leader_epoch: int


async def list_offsets(
    cluster: Cluster,
    positions: Mapping[TopicPartition, int],
    *,
    isolation: str | None = None,
    timeout_ms: int | None = None,
) -> Mapping[TopicPartition, FoundOffset]:
    """The offset of each position: EARLIEST, LATEST, MAX_TIMESTAMP, or a time in milliseconds.

    EARLIEST_LOCAL is where the part begins that is on the broker's own disk.

    A time has the first offset whose record is as late or later. With `read_committed` isolation LATEST is
    the last stable offset. Raises UnknownTopics, NoLeader, Unreachable or BrokerRefused once
    `default.api.timeout.ms` (or `timeout_ms`) is over.
    """
    search = _Search(cluster, positions, isolation or cluster.config.isolation_level)
    patience = cluster.patience(timeout_ms)
    while True:
        await search.attempt(patience)
        if not search.missing:
            return search.found
        if patience.is_over:
            raise search.failure
        await patience.pause()


class _Search:
    """Partitions whose offsets are still to be found, and why the last attempt did not find them."""

    __slots__ = ("_cluster", "_isolation_level", "_positions", "failure", "found", "missing")

    def __init__(self, cluster: Cluster, positions: Mapping[TopicPartition, int], isolation: str) -> None:
        self._cluster = cluster
        self._positions = positions
        self._isolation_level = 1 if isolation == READ_COMMITTED else 0
        self.missing = set(positions)
        self.found: dict[TopicPartition, FoundOffset] = {}
        self.failure: Exception = Unreachable("no broker was asked")

    async def attempt(self, patience: Patience) -> None:
        """Ask the leaders of all partitions that are missing, side by side."""
        if not self.missing:
            return
        await self._cluster.topics(sorted({each.topic for each in self.missing}), patience=patience)
        by_node: dict[int, dict[TopicPartition, Leader]] = defaultdict(dict)
        for partition in sorted(self.missing):
            leader = await self._cluster.leader(*partition, patience=patience)
            by_node[leader.node_id][partition] = leader
        await asyncio.gather(*(self._ask(node_id, led, patience) for node_id, led in by_node.items()))

    async def _ask(self, node_id: int, led: Mapping[TopicPartition, Leader], patience: Patience) -> None:
        timeout_ms = min(self._cluster.config.request_timeout_ms, patience.left_ms)
        request = self._request(led, timeout_ms)
        version_min = max(
            (_VERSION_OF.get(self._positions[each], 1) for each in led),
            default=1,
        )
        try:
            reply: ListOffsetsResponse = await self._cluster.send(
                node_id, request, timeout_ms=timeout_ms, min_version=version_min
            )
        except (ConnectionLost, RequestTimedOut, Unreachable) as error:
            was_cut_short = timeout_ms < self._cluster.config.request_timeout_ms
            # What a broker said before tells more than that there was no time to ask it once more.
            if not (was_cut_short and isinstance(self.failure, BrokerRefused)):
                self.failure = error
            self._distrust(led)
            return
        for topic in reply.topics:
            for partition in topic.partitions:
                self._note(TopicPartition(topic.name, partition.partition_index), partition)

    def _request(self, led: Mapping[TopicPartition, Leader], timeout_ms: int) -> ListOffsetsRequest:
        topics: dict[str, list[ListOffsetsPartition]] = defaultdict(list)
        for each, leader in led.items():
            topics[each.topic].append(
                ListOffsetsPartition(
                    partition_index=each.partition,
                    current_leader_epoch=leader.epoch,
                    timestamp=self._positions[each],
                )
            )
        return ListOffsetsRequest(
            replica_id=_CONSUMER,
            isolation_level=self._isolation_level,
            topics=[ListOffsetsTopic(name=name, partitions=asked) for name, asked in topics.items()],
            timeout_ms=timeout_ms,
        )

    def _note(self, partition: TopicPartition, reply: ListOffsetsPartitionResponse) -> None:
        if partition not in self.missing:
            return
        if reply.error_code == ErrorCode.NONE:
            self.found[partition] = FoundOffset(reply.offset, reply.timestamp, reply.leader_epoch)
            self.missing.discard(partition)
            return
        refusal = BrokerRefused(reply.error_code, None, f"offsets of {partition}")
        if not is_retriable(reply.error_code):
            raise refusal
        self.failure = refusal
        self._distrust([partition])

    def _distrust(self, partitions: Iterable[TopicPartition]) -> None:
        for each in partitions:
            self._cluster.stale(each.topic)
