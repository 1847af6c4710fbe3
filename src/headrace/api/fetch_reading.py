"""Reads the partitions of a fetch, one after the other, within the bounds of the whole response."""

from dataclasses import dataclass
from typing import Final

from headrace.api.fetch_sessions import FetchTarget
from headrace.api.leader_hints import LeaderHints
from headrace.errors import ErrorCode, KafkaError
from headrace.log.log_position import LogPosition
from headrace.log.log_reads import Isolation
from headrace.log.partition_log import PartitionLog
from headrace.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    LeaderIdAndEpoch,
    PartitionData,
)
from headrace.replication.counters import TopicCounters
from headrace.replication.parked_fetches import WaitedPartition
from headrace.replication.partition import Partition
from headrace.replication.replicas import Replicas
from headrace.types import NO_LEADER_EPOCH, ZERO_UUID

_LEADER_HINTS_SINCE: Final = 16
_STORAGE_ERROR_SINCE: Final = 6
_HINTED: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
_EXPECTED: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.OFFSET_OUT_OF_RANGE,
    }
)
NOTHING: Final = b""


@dataclass(slots=True)
class FetchBounds:
    """What holds for all partitions of one fetch. Nothing in it changes; freezing it would cost more."""

    version: int
    replica_id: int
    max_bytes: int
    isolation: Isolation
    leader_only: bool

    @property
    def is_follower(self) -> bool:
        return self.replica_id >= 0


class Reading:
    """One pass over the targets. `waited` has what a parked fetch needs if the pass has found too little."""

    __slots__ = (
        "_bounds",
        "_hints",
        "_is_repeated",
        "_left",
        "_min_one",
        "_now_ms",
        "_only_news",
        "_replicas",
        "_sent",
        "must_answer",
        "results",
        "size",
        "waited",
    )

    def __init__(
        self,
        replicas: Replicas,
        bounds: FetchBounds,
        hints: LeaderHints,
        now_ms: int,
        *,
        only_news: bool,
        is_repeated: bool,
    ) -> None:
        self._only_news = only_news
        self._replicas = replicas
        self._bounds = bounds
        self._hints = hints
        self._now_ms = now_ms
        self._is_repeated = is_repeated
        self._sent: list[tuple[TopicCounters, int]] = []
        self._left = bounds.max_bytes
        self._min_one = True
        self.size = 0
        self.must_answer = False
        self.results: list[tuple[FetchTarget, PartitionData]] = []
        self.waited: list[WaitedPartition] = []

    def read(self, target: FetchTarget) -> None:
        """Read one partition and note the result."""
        partition = self._replicas.get(target.topic, target.index)
        if partition is not None and not self._is_repeated:
            partition.counters.fetch_requests += 1
        if self._only_news and partition is not None and self._is_as_told(partition, target):
            return
        try:
            data = self._read(partition or self._replicas.find(target.topic, target.index), target)
        except KafkaError as error:
            data = self._failed(target, partition, error)
        self._left = max(0, self._left - len(data.records or NOTHING))
        self.results.append((target, data))

    def _is_as_told(self, partition: Partition, target: FetchTarget) -> bool:
        """The short way for most partitions of a session: the reader is at the end and was told so."""
        log, bounds = partition.log, self._bounds
        if log is None or log.health.failure is not None or bounds.is_follower:
            return False
        end, watermark = log.log_end_offset, log.high_watermark
        bound = watermark if bounds.isolation is Isolation.HIGH_WATERMARK else log.last_stable_offset
        if (
            not target.fetch_offset == end == bound
            or target.high_watermark != watermark
            or target.log_start_offset != log.log_start_offset
            or target.leader_epoch not in (NO_LEADER_EPOCH, partition.leader_epoch)
            or target.last_fetched_epoch >= 0
            or (bounds.leader_only and not partition.is_leader)
            or (target.topic_id != ZERO_UUID and target.topic_id != partition.topic_id)
        ):
            return False
        self.waited.append(WaitedPartition(partition, log.end, target.max_bytes, target.leader_epoch))
        return True

    def count_as_sent(self) -> None:
        """The results go out."""
        for counters, size in self._sent:
            counters.bytes_out += size

    def _read(self, partition: Partition, target: FetchTarget) -> PartitionData:
        if partition.is_offline:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        if target.topic_id != ZERO_UUID and target.topic_id != partition.topic_id:
            raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID)
        bounds = self._bounds
        log = partition.log_for(target.leader_epoch, leader_only=bounds.leader_only)
        if bounds.is_follower:
            _require_replica(partition, bounds.replica_id, target.leader_epoch)
        data = PartitionData(
            partition_index=target.index,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=None,
            records=NOTHING,
        )
        if target.last_fetched_epoch >= 0:
            end = partition.diverging_epoch(log, target.last_fetched_epoch, target.fetch_offset)
            if end is not None:
                data.diverging_epoch = EpochEndOffset(epoch=end.epoch, end_offset=end.end_offset)
                self.must_answer = True
                return data
        start = self._fill(data, partition, log, target)
        if bounds.is_follower and not self._is_repeated:
            partition.on_follower_fetch(
                bounds.replica_id, target.fetch_offset, target.follower_log_start, self._now_ms
            )
        self.waited.append(WaitedPartition(partition, start, target.max_bytes, target.leader_epoch))
        return data

    def _fill(
        self, data: PartitionData, partition: Partition, log: PartitionLog, target: FetchTarget
    ) -> LogPosition:
        limit = min(target.max_bytes, self._left)
        if limit < 0 and log.log_start_offset <= target.fetch_offset < log.log_end_offset:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{limit} bytes can't be read")
        found = partition.read(log, target.fetch_offset, limit, self._bounds.isolation, self._min_one)
        records = found.records
        if records is not None:
            size = len(records)
            data.records = records
            self._sent.append((partition.counters, size))
            self.size += size
            self._min_one = False
        if found.aborted is not None:
            data.aborted_transactions = [
                AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
                for each in found.aborted
            ]
        return found.start

    def _failed(self, target: FetchTarget, partition: Partition | None, error: KafkaError) -> PartitionData:
        self.must_answer = True
        code, version = error.code, self._bounds.version
        if partition is not None and code not in _EXPECTED:
            partition.counters.fetch_requests_failed += 1
        if code is ErrorCode.KAFKA_STORAGE_ERROR and version < _STORAGE_ERROR_SINCE:
            # Clients of that age know this one, and look for the leader again.
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        data = failure(target.index, code)
        data.aborted_transactions = None
        if version >= _LEADER_HINTS_SINCE and code in _HINTED:
            leader = self._hints.leader_of(target.topic, target.index)
            data.current_leader = LeaderIdAndEpoch(leader_id=leader.leader, leader_epoch=leader.leader_epoch)
        return data


def _require_replica(partition: Partition, replica_id: int, leader_epoch: int) -> None:
    """Only replicas fetch as replicas; who names the right epoch may just be ahead of us."""
    if replica_id not in partition.followers:
        raise KafkaError(
            ErrorCode.UNKNOWN_LEADER_EPOCH if leader_epoch >= 0 else ErrorCode.NOT_LEADER_OR_FOLLOWER,
            f"broker {replica_id} is no replica of {partition.name}",
        )


def failure(index: int, code: ErrorCode) -> PartitionData:
    """The result for a partition that can't be read."""
    return PartitionData(partition_index=index, error_code=code, high_watermark=-1, records=NOTHING)
