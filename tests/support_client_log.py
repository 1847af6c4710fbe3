"""The logs of fake brokers, and how these answer fetches, fetch sessions included."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

from headrace.errors import ErrorCode
from headrace.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)
from headrace.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from headrace.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from headrace.records.batch import Batch, batches
from headrace.records.builder import NewRecord, build_batch
from headrace.records.control import ControlType, build_end_transaction_marker

if TYPE_CHECKING:
    from tests.support_client import FakeBroker, FakeTopic

LATEST, EARLIEST, EARLIEST_LOCAL = -1, -2, -4


@dataclass(slots=True)
class FakePartition:
    """A partition: who leads it, and its log as batches in order; `epoch_ends` are ends of epochs to tell.

    `aborted` are aborted transactions: their producer, and the offsets of their first record and marker."""

    leader: int = 1
    epoch: int = 0
    log: list[bytes] = field(default_factory=list)
    start: int = 0
    end: int = 0
    stable: int | None = None
    aborted: list[tuple[int, int, int]] = field(default_factory=list)
    epoch_ends: dict[int, tuple[int, int]] = field(default_factory=dict)
    read_replica: int = -1
    followers: set[int] = field(default_factory=set)
    local_start: int | None = None
    appended: asyncio.Event = field(default_factory=asyncio.Event)

    def append(self, *values: bytes, **options: Any) -> None:
        """Append a batch of records with these values."""
        options = {"base_offset": self.end, "leader_epoch": self.epoch, **options}
        self.append_raw(
            build_batch([NewRecord(1000 + len(self.log), b"k", each) for each in values], **options)
        )

    def append_raw(self, data: bytes) -> None:
        """Append a batch as it is."""
        self.log.append(data)
        self.end = Batch(memoryview(data)).next_offset
        self.appended.set()

    @property
    def readable(self) -> int:
        return self.end if self.stable is None else self.stable

    def read(self, offset: int, bytes_max: int, end: int) -> bytes:
        """Whole batches from the one with `offset` on; the first one however large."""
        found = b""
        for data in self.log:
            batch = next(batches(data), None)
            if batch is None or batch.last_offset < offset or batch.base_offset >= end:
                continue
            if found and len(found) + len(data) > bytes_max:
                break
            found += data
        return found


async def answer_fetch(
    topics: "dict[str, FakeTopic]", broker: "FakeBroker", request: FetchRequest
) -> FetchResponse:
    """What a broker answers to a fetch; it waits a little if there is nothing."""
    names = {topic.topic_id: name for name, topic in topics.items()}
    wanted, session_id, code = _session(broker, request)
    if code:
        return FetchResponse(error_code=code)
    reply = _read_all(topics, names, broker, request, wanted)
    if not any(data.records or data.error_code for topic in reply.responses for data in topic.partitions):
        await asyncio.sleep(min(request.max_wait_ms, 20) / 1000)
        reply = _read_all(topics, names, broker, request, wanted)
    reply.session_id = session_id
    if request.session_epoch > 0:
        _leave_out_unchanged(reply, broker.sessions[session_id])
    elif request.session_epoch == 0:
        _note_told(reply, broker.sessions[session_id])
    return reply


def _note_told(reply: FetchResponse, session: dict[str, Any]) -> None:
    for topic in reply.responses:
        for data in topic.partitions:
            session["told"][topic.topic, topic.topic_id, data.partition_index] = data.high_watermark


def _leave_out_unchanged(reply: FetchResponse, session: dict[str, Any]) -> None:
    """As brokers do it: a partition without records, errors or another end is not mentioned."""
    for topic in reply.responses:
        topic.partitions = [
            data
            for data in topic.partitions
            if data.records
            or data.error_code
            or data.preferred_read_replica >= 0
            or session["told"].get((topic.topic, topic.topic_id, data.partition_index)) != data.high_watermark
        ]
    reply.responses = [topic for topic in reply.responses if topic.partitions]
    _note_told(reply, session)


Key = tuple[str, UUID, int]


def _session(broker: "FakeBroker", request: FetchRequest) -> tuple[dict[Key, FetchPartition], int, int]:
    told = {
        (topic.topic, topic.topic_id, each.partition): each
        for topic in request.topics
        for each in topic.partitions
    }
    if request.session_epoch <= 0:
        broker.sessions.pop(request.session_id, None)
        if request.session_epoch < 0:
            return told, 0, 0
        session_id = 1000 + len(broker.sessions) + len(broker.headers)
        broker.sessions[session_id] = {"epoch": 1, "partitions": told, "told": {}}
        return told, session_id, 0
    session = broker.sessions.get(request.session_id)
    if session is None:
        return {}, 0, ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    if session["epoch"] != request.session_epoch:
        return {}, 0, ErrorCode.INVALID_FETCH_SESSION_EPOCH
    session["epoch"] += 1
    for topic in request.forgotten_topics_data:
        for partition in topic.partitions:
            session["partitions"].pop((topic.topic, topic.topic_id, partition), None)
    session["partitions"].update(told)
    return session["partitions"], request.session_id, 0


def _read_all(
    topics: "dict[str, FakeTopic]",
    names: dict[UUID, str],
    broker: "FakeBroker",
    request: FetchRequest,
    wanted: dict[Key, FetchPartition],
) -> FetchResponse:
    left = request.max_bytes
    responses = []
    for (name, topic_id, index), asked in wanted.items():
        known = topics.get(name or names.get(topic_id, ""))
        if known is None or index not in known.partitions:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if name else ErrorCode.UNKNOWN_TOPIC_ID
            data = PartitionData(partition_index=index, error_code=code, high_watermark=-1)
        else:
            data = _read(known.partitions[index], index, broker, request, asked, left)
        left -= len(data.records or b"")
        responses.append(FetchableTopicResponse(topic=name, topic_id=topic_id, partitions=[data]))
    return FetchResponse(responses=responses)


def _read(
    partition: FakePartition,
    index: int,
    broker: "FakeBroker",
    request: FetchRequest,
    asked: FetchPartition,
    left: int,
) -> PartitionData:
    code = _leader_error(partition, broker.node_id, asked.current_leader_epoch, partition.followers)
    offset = asked.fetch_offset
    if not code and not partition.start <= offset <= partition.end:
        code = ErrorCode.OFFSET_OUT_OF_RANGE
    data = PartitionData(partition_index=index, error_code=code, high_watermark=-1)
    if code:
        if code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
            data.current_leader = LeaderIdAndEpoch(leader_id=partition.leader, leader_epoch=partition.epoch)
        return data
    data.high_watermark, data.last_stable_offset = partition.end, partition.readable
    data.log_start_offset = partition.start
    if partition.read_replica >= 0 and broker.node_id == partition.leader and request.rack_id:
        data.preferred_read_replica = partition.read_replica
        data.records = b""
        return data
    end = partition.readable if request.isolation_level else partition.end
    data.records = partition.read(offset, min(asked.partition_max_bytes, left), end) if left > 0 else b""
    if request.isolation_level:
        data.aborted_transactions = [
            AbortedTransaction(producer_id=producer, first_offset=first)
            for producer, first, last in partition.aborted
            if last >= offset
        ]
    return data


def _leader_error(partition: FakePartition, node_id: int, epoch: int, followers: Collection[int] = ()) -> int:
    if partition.leader != node_id and node_id not in followers:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if 0 <= epoch < partition.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > partition.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    return ErrorCode.NONE


def answer_offsets(
    topics: "dict[str, FakeTopic]", node_id: int, request: ListOffsetsRequest
) -> ListOffsetsResponse:
    """What a broker answers to ListOffsets; times are not kept."""
    replies = []
    for topic in request.topics:
        found = []
        for each in topic.partitions:
            known = topics.get(topic.name)
            partition = known.partitions.get(each.partition_index) if known else None
            if partition is None:
                code, offset = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), -1
            else:
                code = _leader_error(partition, node_id, each.current_leader_epoch)
                latest = partition.readable if request.isolation_level else partition.end
                local = partition.start if partition.local_start is None else partition.local_start
                offsets = {LATEST: latest, EARLIEST: partition.start, EARLIEST_LOCAL: local}
                offset = -1 if code else offsets.get(each.timestamp, -1)
            found.append(
                ListOffsetsPartitionResponse(
                    partition_index=each.partition_index, error_code=code, offset=offset
                )
            )
        replies.append(ListOffsetsTopicResponse(name=topic.name, partitions=found))
    return ListOffsetsResponse(topics=replies)


def answer_epochs(
    topics: "dict[str, FakeTopic]", node_id: int, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    """Where epochs end; unless told otherwise, all of them at the end of the log."""
    replies = []
    for topic in request.topics:
        found = []
        for each in topic.partitions:
            partition = topics[topic.topic].partitions[each.partition]
            code = _leader_error(partition, node_id, each.current_leader_epoch)
            epoch, end = partition.epoch_ends.get(each.leader_epoch, (each.leader_epoch, partition.end))
            found.append(
                EpochEndOffset(error_code=code, partition=each.partition, leader_epoch=epoch, end_offset=end)
            )
        replies.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=found))
    return OffsetForLeaderEpochResponse(topics=replies)


def marker(partition: FakePartition, producer_id: int, kind: ControlType) -> bytes:
    """The end of a transaction, to be appended next."""
    return build_end_transaction_marker(
        kind,
        producer_id=producer_id,
        producer_epoch=0,
        coordinator_epoch=0,
        timestamp=1000,
        base_offset=partition.end,
        leader_epoch=partition.epoch,
    )
