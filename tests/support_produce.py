"""Brokers in memory that take what producers send as Kafka does, and go wrong on demand."""

import asyncio
import selectors
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any
from uuid import UUID

from headrace.client.cluster import Cluster
from headrace.client.config import ClientConfig
from headrace.client.errors import ConnectionLost, Unreachable
from headrace.client.metadata import Broker, Metadata, PartitionMetadata, TopicMetadata
from headrace.errors import ErrorCode
from headrace.protocol.codec import decode, encode
from headrace.protocol.message import Message
from headrace.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from headrace.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from headrace.protocol.messages.metadata import MetadataRequest, MetadataResponse
from headrace.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from headrace.records.arrow_reader import read_columns
from headrace.records.batch import Batch, batches
from headrace.testing.entropy import SeededEntropy
from headrace.types import TopicPartition

ROUND_TRIP_S = 0.002
BATCHES_REMEMBERED = 5
POISON = b"poison"


class _NoWaiting(selectors.DefaultSelector):
    """Instead of waiting for a timer, the time moves on to it."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            return super().select(None)
        found = super().select(0)
        if not found and timeout > 0:
            self.now += timeout
        return found


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose time passes as quickly as nothing happens in it."""

    def __init__(self) -> None:
        self._no_waiting = _NoWaiting()
        super().__init__(self._no_waiting)

    def time(self) -> float:
        return self._no_waiting.now


def run_virtual(main: Coroutine[Any, Any, None]) -> None:
    """Run to the end, and fail if anything is left running."""

    async def alone() -> None:
        await main
        assert asyncio.all_tasks() == {asyncio.current_task()}

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(alone())


class Fault(Enum):
    """What may happen to one produce request."""

    NONE = auto()
    LOST_ON_THE_WAY = auto()
    REPLY_LOST = auto()
    SLOW = auto()
    NOT_SENT = auto()
    LEADER_MOVES = auto()
    LEADER_MOVES_UNTOLD = auto()
    MOVES_AFTER_APPEND = auto()
    TOO_FEW_REPLICAS = auto()
    TOO_FEW_REPLICAS_AFTER = auto()
    TIMED_OUT_AFTER = auto()
    STORAGE_ERROR = auto()
    NOT_MENTIONED = auto()


@dataclass(slots=True)
class Remembered:
    """What a broker knows of a producer: its epoch and its last batches as (first, last, offset)."""

    epoch: int
    last_batches: deque[tuple[int, int, int]]


@dataclass(slots=True)
class FakePartition:
    """The log of a partition, as values in order, and who leads it."""

    leader: int = 1
    epoch: int = 0
    values: list[bytes | None] = field(default_factory=list)
    batches: list[bytes] = field(default_factory=list)
    producers: dict[int, Remembered] = field(default_factory=dict)
    message_bytes_max: int = 1_048_588
    refusal: int = 0

    def append(self, data: bytes) -> PartitionProduceResponse:
        """Take one batch, or say why not."""
        (batch,) = batches(data)
        assert batch.crc_is_valid()
        assert batch.size == len(data)
        assert batch.base_offset == 0
        if self.refusal:
            return PartitionProduceResponse(error_code=self.refusal)
        if batch.size > self.message_bytes_max:
            return PartitionProduceResponse(error_code=ErrorCode.MESSAGE_TOO_LARGE)
        values = read_columns(data).column("value").to_pylist()
        if POISON in values:
            return PartitionProduceResponse(
                error_code=ErrorCode.INVALID_RECORD,
                error_message="One or more records have been rejected",
                record_errors=[
                    BatchIndexAndErrorMessage(
                        batch_index=values.index(POISON), batch_index_error_message="poisonous"
                    )
                ],
            )
        return self._in_sequence(batch, data, values)

    def _in_sequence(self, batch: Batch, data: bytes, values: list[bytes | None]) -> PartitionProduceResponse:
        first, last = batch.base_sequence, batch.last_sequence
        known = self.producers.get(batch.producer_id)
        if batch.producer_id >= 0 and known is not None:
            for remembered in known.last_batches:
                if batch.producer_epoch == known.epoch and remembered[:2] == (first, last):
                    return PartitionProduceResponse(base_offset=remembered[2])
            if batch.producer_epoch < known.epoch:
                return PartitionProduceResponse(error_code=ErrorCode.INVALID_PRODUCER_EPOCH)
            expected = known.last_batches[-1][1] + 1 if batch.producer_epoch == known.epoch else 0
            if first != expected:
                return PartitionProduceResponse(error_code=ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
        offset = len(self.values)
        self.values += values
        self.batches.append(data)
        if batch.producer_id >= 0:
            if known is None or known.epoch != batch.producer_epoch:
                known = self.producers[batch.producer_id] = Remembered(
                    batch.producer_epoch, deque(maxlen=BATCHES_REMEMBERED)
                )
            known.last_batches.append((first, last, offset))
        return PartitionProduceResponse(base_offset=offset)


class FakeCluster(Cluster):
    """A cluster without connections. `faults` happen to produce requests in turn; then all goes well."""

    def __init__(
        self,
        config: ClientConfig,
        topics: dict[str, int],
        *,
        nodes: int = 1,
        faults: Iterable[Fault] = (),
        version: int = 13,
    ) -> None:
        super().__init__(config, entropy=SeededEntropy(7))
        self.nodes = nodes
        self.partitions = {
            TopicPartition(topic, index): FakePartition(leader=1 + index % nodes)
            for topic, count in topics.items()
            for index in range(count)
        }
        self.faults = deque(faults)
        self.version = version
        self.requests: list[ProduceRequest] = []
        self.others: list[Message] = []
        self.refreshes = 0
        self.producer_ids = 0
        self.init_codes: deque[int] = deque()
        self.on_produce: Callable[[ProduceRequest], Coroutine[Any, Any, None]] | None = None
        self._waiting: dict[int, set[asyncio.Future[None]]] = {}

    async def start(self) -> None:
        await self.refresh()

    def move(self, partition: TopicPartition) -> None:
        """Another broker leads from now on, and knows all that the one before knew."""
        found = self.partitions[partition]
        found.leader = 1 + found.leader % self.nodes
        found.epoch += 1

    def values(self, topic: str, partition: int = 0) -> list[bytes | None]:
        """What a consumer would read."""
        return self.partitions[TopicPartition(topic, partition)].values

    # What the writer calls

    async def refresh(self) -> Metadata:
        self.refreshes += 1
        self.in_use.begin_refresh()
        await asyncio.sleep(ROUND_TRIP_S)
        topics: dict[str, dict[int, PartitionMetadata]] = {}
        for (topic, index), found in self.partitions.items():
            topics.setdefault(topic, {})[index] = PartitionMetadata(index, found.leader, found.epoch)
        self.metadata = Metadata(
            brokers={node: Broker(node, "host", 9000 + node) for node in range(1, self.nodes + 1)},
            topics={
                name: TopicMetadata(name, _id_of(name) if self.version >= 13 else UUID(int=0), parts)
                for name, parts in topics.items()
            },
        )
        self.in_use.forget_unused(asyncio.get_running_loop().time())
        return self.metadata

    async def describe_all(self) -> Metadata:
        return self.metadata

    async def close_lane(self, lane: str) -> None:
        pass

    async def send(self, node_id: int, request: Message, **options: Any) -> Any:
        if isinstance(request, ProduceRequest):
            return await self._produce(node_id, request, options)
        self.others.append(request)
        await asyncio.sleep(ROUND_TRIP_S)
        if isinstance(request, InitProducerIdRequest):
            code = self.init_codes.popleft() if self.init_codes else 0
            self.producer_ids += 1
            return InitProducerIdResponse(error_code=code, producer_id=100 + self.producer_ids)
        if isinstance(request, MetadataRequest):
            return MetadataResponse()
        assert isinstance(request, DescribeConfigsRequest)
        return self._describe(request)

    # Produce

    async def _produce(self, node_id: int, request: ProduceRequest, options: dict[str, Any]) -> Any:
        fault = self.faults.popleft() if self.faults else Fault.NONE
        if fault == Fault.NOT_SENT:
            await asyncio.sleep(ROUND_TRIP_S)
            raise Unreachable("nobody listens")
        limit = options.get("max_version")
        version = self.version if limit is None else min(limit, self.version)
        # What is under way is a copy: the writer may change its own at any time.
        received = decode(ProduceRequest, version, encode(request, version))
        self.requests.append(received)
        if self.on_produce is not None:
            await self.on_produce(received)
        if fault == Fault.LOST_ON_THE_WAY:
            self._lose_connection(node_id)
            raise ConnectionLost("broker", "it fell silent")
        reply = self._answer(node_id, received, fault)
        if options.get("expects_reply") is False:
            return None
        if fault == Fault.REPLY_LOST:
            self._lose_connection(node_id)
            raise ConnectionLost("broker", "it fell silent")
        await self._travel(node_id, ROUND_TRIP_S * (20 if fault == Fault.SLOW else 1))
        return decode(ProduceResponse, version, encode(reply, version))

    async def _travel(self, node_id: int, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        arrived: asyncio.Future[None] = loop.create_future()
        waiting = self._waiting.setdefault(node_id, set())
        waiting.add(arrived)
        timer = loop.call_later(seconds, _arrive, arrived)
        try:
            await arrived
        finally:
            timer.cancel()
            waiting.discard(arrived)

    def _lose_connection(self, node_id: int) -> None:
        for arrived in self._waiting.get(node_id, set()):
            if not arrived.done():
                arrived.set_exception(ConnectionLost("broker", "it fell silent"))

    def _answer(self, node_id: int, request: ProduceRequest, fault: Fault) -> ProduceResponse:
        nodes = range(1, self.nodes + 1) if self.version >= 10 else ()
        reply = ProduceResponse(
            node_endpoints=[NodeEndpoint(node_id=node, host="host", port=9000 + node) for node in nodes]
        )
        names = {_id_of(partition.topic): partition.topic for partition in self.partitions}
        for topic in request.topic_data:
            name = topic.name or names[topic.topic_id]
            answers = [
                self._answer_one(node_id, TopicPartition(name, each.index), bytes(each.records), fault)  # type: ignore[arg-type]
                for each in topic.partition_data
            ]
            if fault != Fault.NOT_MENTIONED:
                reply.responses.append(
                    TopicProduceResponse(name=name, topic_id=topic.topic_id, partition_responses=answers)
                )
        return reply

    def _answer_one(
        self, node_id: int, partition: TopicPartition, data: bytes, fault: Fault
    ) -> PartitionProduceResponse:
        found = self.partitions[partition]
        if fault in (Fault.LEADER_MOVES, Fault.LEADER_MOVES_UNTOLD):
            self.move(partition)
        early = {
            Fault.TOO_FEW_REPLICAS: ErrorCode.NOT_ENOUGH_REPLICAS,
            Fault.STORAGE_ERROR: ErrorCode.KAFKA_STORAGE_ERROR,
        }
        late = {
            Fault.TOO_FEW_REPLICAS_AFTER: ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
            Fault.TIMED_OUT_AFTER: ErrorCode.REQUEST_TIMED_OUT,
            Fault.MOVES_AFTER_APPEND: ErrorCode.NOT_LEADER_OR_FOLLOWER,
        }
        if found.leader != node_id:
            answer = PartitionProduceResponse(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
            if fault != Fault.LEADER_MOVES_UNTOLD:
                answer.current_leader = LeaderIdAndEpoch(leader_id=found.leader, leader_epoch=found.epoch)
        elif fault in early:
            answer = PartitionProduceResponse(error_code=early[fault])
        else:
            answer = found.append(data)
            if fault in late and not answer.error_code:
                answer = PartitionProduceResponse(error_code=late[fault])
                if fault == Fault.MOVES_AFTER_APPEND:
                    self.move(partition)
        answer.index = partition.partition
        return answer

    def _describe(self, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        (resource,) = request.resources
        limit = self.partitions[TopicPartition(resource.resource_name, 0)].message_bytes_max
        config = DescribeConfigsResourceResult(name="max.message.bytes", value=str(limit))
        return DescribeConfigsResponse(results=[DescribeConfigsResult(configs=[config])])


def _arrive(arrived: "asyncio.Future[None]") -> None:
    if not arrived.done():
        arrived.set_result(None)


def _id_of(topic: str) -> UUID:
    return UUID(bytes=topic.encode().rjust(16, b"-")[:16])
