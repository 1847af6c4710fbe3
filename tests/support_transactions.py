"""Transactions with as few words as a test should need: metadata in any state, and a node to ask."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from headrace.api import k00_produce, k22_init_producer_id, k24_add_partitions_to_txn, k26_end_txn
from headrace.coordinator.hosted_shard import ShardState
from headrace.coordinator.rebuild import Difference, Rebuilding, differences
from headrace.errors import ErrorCode, KafkaError
from headrace.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from headrace.protocol.messages.end_txn import EndTxnRequest
from headrace.protocol.messages.init_producer_id import InitProducerIdRequest
from headrace.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from headrace.protocol.prefixed import TRANSACTION_LOG
from headrace.records.batch import batches
from headrace.records.control import ControlType, control_type
from headrace.server.transactions import join_transactions
from headrace.transactions.metadata import TransactionMetadata
from headrace.transactions.shard import ProducerSession, TransactionShard
from headrace.transactions.states import TransactionState
from headrace.types import TopicPartition
from tests.support_data import TOPIC, DataNode, batch, start_node

NOW_MS = 1_700_000_000_000
TIMEOUT_MS = 60_000
ORDERS = TopicPartition("orders", 0)
PAYMENTS = TopicPartition("payments", 3)

AT_REST = (TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
ENDING = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)


def metadata(
    state: TransactionState = TransactionState.EMPTY,
    *,
    producer_id: int = 7,
    epoch: int = 5,
    **changes: object,
) -> TransactionMetadata:
    """A transactional id in a state, with what usually goes with that state."""
    begun = state is not TransactionState.EMPTY
    has_partitions = state is TransactionState.ONGOING or state in ENDING
    made = TransactionMetadata(
        "payments-1",
        producer_id,
        TIMEOUT_MS,
        NOW_MS,
        producer_epoch=epoch,
        state=state,
        partitions=frozenset({ORDERS}) if has_partitions else frozenset(),
        start_ms=NOW_MS if begun else -1,
        previous_producer_id=producer_id,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


class NoTimers:
    """For shards that are not to do anything by themselves."""

    def schedule(self, key: object, delay_ms: int, operation: object, *, retry: bool = True) -> None:
        raise AssertionError("the transaction coordinator sets no timers on shards")

    def schedule_if_absent(
        self, key: object, delay_ms: int, operation: object, *, retry: bool = True
    ) -> None:
        raise AssertionError("the transaction coordinator sets no timers on shards")

    def cancel(self, key: object) -> None:
        """There is nothing to cancel."""

    def is_scheduled(self, key: object) -> bool:
        return False


TRANSACTIONS = "__transaction_state"
PROPERTIES = {"transaction.state.log.num.partitions": "1"}
ID = "payments-1"


class TransactionNode:
    """A small node that coordinates transactions: real logs on a memory disk, time that stands still."""

    def __init__(self, node: DataNode, version: int = 2) -> None:
        self.node = node
        self.version = version
        node.services.image.features["transaction.version"] = version
        self.coordinator = join_transactions(node.services)
        self.coordinator.runtime.start()

    @property
    def shard(self) -> TransactionShard:
        return self.coordinator.runtime.shards[0].active()

    def lead(self, **fields: Any) -> None:
        """Lead the only partition of the coordinator's topic."""
        self.node.assign(TRANSACTIONS, 0, **fields)

    def metadata(self, transactional_id: str = ID) -> TransactionMetadata:
        return self.shard.transactions[transactional_id]

    async def begin_session(
        self, transactional_id: str = ID, timeout_ms: int = TIMEOUT_MS, expected: tuple[int, int] = (-1, -1)
    ) -> ProducerSession:
        """What InitProducerId gives to a producer; a `KafkaError` if it is refused."""
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=expected[0],
            producer_epoch=expected[1],
        )
        reply = await self.node.ask(k22_init_producer_id.API, request)
        _check(reply.error_code)
        return ProducerSession(reply.producer_id, reply.producer_epoch)

    async def produce(
        self,
        session: ProducerSession,
        *,
        topic: str = TOPIC,
        sequence: int = 0,
        count: int = 2,
        version: int = 12,
        transactional_id: str = ID,
    ) -> PartitionProduceResponse:
        """The answer to a transactional batch for partition 0 of a topic."""
        records = batch(
            count, producer_id=session.producer_id, epoch=session.epoch, sequence=sequence, transactional=True
        )
        data = PartitionProduceData(index=0, records=records)
        request = ProduceRequest(
            transactional_id=transactional_id,
            acks=-1,
            timeout_ms=1_000,
            topic_data=[TopicProduceData(name=topic, partition_data=[data])],
        )
        reply = await self.node.ask(k00_produce.API, request, version)
        answer: PartitionProduceResponse = reply.responses[0].partition_responses[0]
        return answer

    async def add_partitions(
        self, session: ProducerSession, *partitions: TopicPartition, version: int = 3, verify: bool = False
    ) -> dict[TopicPartition, ErrorCode]:
        """The code of every partition."""
        topics = [AddPartitionsToTxnTopic(name=name, partitions=[index]) for name, index in partitions]
        if version < 4:
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=ID,
                v3_and_below_producer_id=session.producer_id,
                v3_and_below_producer_epoch=session.epoch,
                v3_and_below_topics=topics,
            )
        else:
            transaction = AddPartitionsToTxnTransaction(
                transactional_id=ID,
                producer_id=session.producer_id,
                producer_epoch=session.epoch,
                verify_only=verify,
                topics=topics,
            )
            request = AddPartitionsToTxnRequest(transactions=[transaction])
        reply = await self.node.ask(k24_add_partitions_to_txn.API, request, version)
        results = reply.results_by_topic_v3_and_below
        if version >= 4:
            results = reply.results_by_transaction[0].topic_results
        return {
            TopicPartition(topic.name, result.partition_index): ErrorCode(result.partition_error_code)
            for topic in results
            for result in topic.results_by_partition
        }

    async def end(
        self, session: ProducerSession, commit: bool = True, version: int = 5, transactional_id: str = ID
    ) -> ProducerSession:
        """What the producer goes on with; a `KafkaError` if it is refused."""
        request = EndTxnRequest(
            transactional_id=transactional_id,
            producer_id=session.producer_id,
            producer_epoch=session.epoch,
            committed=commit,
        )
        reply = await self.node.ask(k26_end_txn.API, request, version)
        _check(reply.error_code)
        return ProducerSession(reply.producer_id, reply.producer_epoch)

    async def settled(self, transactional_id: str = ID) -> TransactionMetadata:
        """The id once its partitions know the last outcome."""
        await until(lambda: not self.metadata(transactional_id).state.is_ending)
        return self.metadata(transactional_id)

    def markers(self, topic: str = TOPIC) -> list[tuple[int, ControlType, int]]:
        """Offset, kind and producer epoch of every marker in partition 0 of a topic."""
        found = self.node.partition(topic).leader_log.read(0, 1 << 20).records
        return [
            (each.base_offset, control_type(each), each.producer_epoch)
            for each in batches(b"" if found is None else found.read())
            if each.is_control
        ]

    async def differences(self) -> list[Difference]:
        """Where the state is not what the log says."""
        services = self.node.services
        rebuilding = Rebuilding(
            lambda context: TransactionShard(context, self.coordinator.sender),
            TRANSACTION_LOG,
            services.image,
            services.clock,
        )
        return await differences(self.coordinator.runtime, rebuilding)

    async def restart(self) -> "TransactionNode":
        """Another node on the same disk, after a crash of this one."""
        await self.coordinator.runtime.close()
        disk, clock, cluster = self.node.disk, self.node.clock, self.node.cluster
        again = TransactionNode(await start_node(disk, clock, cluster, properties=PROPERTIES), self.version)
        await again.loaded()
        return again

    async def loaded(self) -> None:
        await until(lambda: not self.coordinator.runtime.count(ShardState.LOADING))


@asynccontextmanager
async def transaction_node(
    version: int = 2, topics: tuple[str, ...] = (TOPIC,), **properties: str
) -> AsyncIterator[TransactionNode]:
    """A coordinator with topics to write to; whatever a test does, its log says the same as its state."""
    keys = {name.replace("_", "."): value for name, value in properties.items()}
    one = TransactionNode(await start_node(properties=PROPERTIES | keys), version)
    one.lead()
    for topic in topics:
        one.node.assign(topic)
    yield one
    assert not await one.differences()
    await one.coordinator.runtime.close()


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop turn until something holds."""
    loop = asyncio.get_running_loop()
    while not condition():
        turn = loop.create_future()
        loop.call_soon(turn.set_result, None)
        await turn


def _check(code: int) -> None:
    if code:
        raise KafkaError(ErrorCode(code))


async def refusal(awaitable: Awaitable[object]) -> ErrorCode:
    """The code with which something is refused."""
    try:
        reply = await awaitable
    except KafkaError as error:
        return error.code
    raise AssertionError(f"{reply} was not to be")
