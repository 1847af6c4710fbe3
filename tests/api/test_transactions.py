"""Transactions over the wire where something has to be waited for, or goes to several at once."""

import asyncio
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import Any, cast

from headrace.api import (
    k00_produce,
    k09_offset_fetch,
    k24_add_partitions_to_txn,
    k25_add_offsets_to_txn,
    k27_write_txn_markers,
    k28_txn_offset_commit,
    k65_describe_transactions,
    k66_list_transactions,
)
from headrace.errors import ErrorCode
from headrace.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from headrace.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from headrace.protocol.messages.describe_transactions import DescribeTransactionsRequest
from headrace.protocol.messages.list_transactions import ListTransactionsRequest
from headrace.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from headrace.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from headrace.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from headrace.server.groups import start_groups
from headrace.testing.entropy import SeededEntropy
from headrace.transactions.shard import ProducerSession
from headrace.transactions.states import TransactionState
from headrace.types import TopicPartition
from tests.support_data import NODE, TOPIC, batch, start_node
from tests.support_log import on_loop
from tests.support_transactions import (
    ID,
    PROPERTIES,
    TRANSACTIONS,
    TransactionNode,
    transaction_node,
    until,
)

E = ErrorCode
OFFSETS = "__consumer_offsets"
FOLLOWER = 2


def lag_behind(one: TransactionNode) -> int:
    """Give the coordinator's topic a follower that has everything so far; the offset it is at."""
    one.lead(leader_epoch=1, partition_epoch=1, replicas=(NODE, FOLLOWER))
    partition = one.node.partition(TRANSACTIONS)
    end = partition.leader_log.log_end_offset
    partition.on_follower_fetch(FOLLOWER, end, 0, one.node.clock.now_ms())
    return end


def catch_up(one: TransactionNode) -> None:
    partition = one.node.partition(TRANSACTIONS)
    end = partition.leader_log.log_end_offset
    partition.on_follower_fetch(FOLLOWER, end, 0, one.node.clock.now_ms())


def produce_request(session: ProducerSession, sequence: int, value: bytes) -> ProduceRequest:
    records = batch(
        value=value,
        producer_id=session.producer_id,
        epoch=session.epoch,
        sequence=sequence,
        transactional=True,
    )
    data = [PartitionProduceData(index=0, records=records)]
    return ProduceRequest(
        transactional_id=ID,
        acks=-1,
        timeout_ms=1_000,
        topic_data=[TopicProduceData(name=TOPIC, partition_data=data)],
    )


def code_of(reply: Any) -> int:
    return int(reply.responses[0].partition_responses[0].error_code)


@on_loop
async def test_a_batch_waits_until_its_partition_is_in_the_transaction_and_keeps_its_bytes() -> None:
    async with transaction_node() as one:
        session = await one.begin_session()
        lag_behind(one)
        request = produce_request(session, 0, b"kept")
        # The handler is given a view of a buffer that is used again for the next request.
        received = bytearray(cast(bytes, request.topic_data[0].partition_data[0].records))
        request.topic_data[0].partition_data[0].records = memoryview(received)
        reply = k00_produce.handle(one.node.services, one.node.context(k00_produce.API, 12), request)
        assert isinstance(reply, Awaitable)
        received[:] = bytes(len(received))
        waiting = asyncio.ensure_future(reply)
        await asyncio.sleep(0)
        assert one.node.partition().leader_log.log_end_offset == 0
        catch_up(one)
        assert code_of(await waiting) == E.NONE
        found = one.node.partition().leader_log.read(0, 1 << 20).records
        assert found is not None
        assert b"kept" in found.read()


@on_loop
async def test_a_later_batch_does_not_get_ahead_of_one_that_waits() -> None:
    async with transaction_node() as one:
        session = await one.begin_session()
        lag_behind(one)
        replies = [
            asyncio.ensure_future(one.node.ask(k00_produce.API, produce_request(session, each, b"v"), 12))
            for each in (0, 1, 2)
        ]
        await until(lambda: one.shard.transactions[ID].state is TransactionState.ONGOING)
        assert one.node.partition().leader_log.log_end_offset == 0
        catch_up(one)
        assert [code_of(await reply) for reply in replies] == [E.NONE] * 3
        assert one.node.partition().leader_log.log_end_offset == 3


@on_loop
async def test_a_batch_waits_a_little_for_the_end_of_the_transaction_before() -> None:
    async with transaction_node(topics=(TOPIC, "other")) as one:
        session = await one.begin_session()
        await one.produce(session, topic="other")
        one.node.assign("other", leader=-1, leader_epoch=1, partition_epoch=1)
        following = await one.end(session)
        waiting = asyncio.ensure_future(one.produce(following))
        await until(lambda: one.coordinator.sender.pending == 1)
        one.node.assign("other", leader=NODE, leader_epoch=2, partition_epoch=2)
        assert (await waiting).error_code == E.NONE


@on_loop
async def test_a_batch_does_not_wait_for_ever_for_the_transaction_before() -> None:
    async with transaction_node(
        topics=(TOPIC, "other"), add_partitions_to_txn_retry_backoff_max_ms="0"
    ) as one:
        session = await one.begin_session()
        await one.produce(session, topic="other")
        one.node.assign("other", leader=-1, leader_epoch=1, partition_epoch=1)
        following = await one.end(session)
        answer = await one.produce(following)
        assert (answer.error_code, answer.error_message) == (E.CONCURRENT_TRANSACTIONS, None)
        assert (await one.produce(following, version=11)).error_code == E.NOT_ENOUGH_REPLICAS
        one.node.delete_topic("other")
        await one.settled()


@on_loop
async def test_brokers_ask_about_several_transactions_at_once() -> None:
    async with transaction_node() as one:
        mine = await one.begin_session(ID)
        theirs = await one.begin_session("another")
        lag_behind(one)
        topics = [AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])]
        request = AddPartitionsToTxnRequest(
            transactions=[
                AddPartitionsToTxnTransaction(
                    transactional_id=name,
                    producer_id=who.producer_id,
                    producer_epoch=who.epoch,
                    topics=topics,
                )
                for name, who in ((ID, mine), ("another", theirs), ("unknown", theirs))
            ]
        )
        reply = asyncio.ensure_future(one.node.ask(k24_add_partitions_to_txn.API, request, 5))
        await until(lambda: len(one.shard.in_flight) == 2)
        catch_up(one)
        results = (await reply).results_by_transaction
        codes = {each.transactional_id: each.topic_results[0].results_by_partition[0] for each in results}
        assert {name: result.partition_error_code for name, result in codes.items()} == {
            ID: E.NONE,
            "another": E.NONE,
            "unknown": E.INVALID_PRODUCER_ID_MAPPING,
        }


@on_loop
async def test_descriptions_wait_for_what_is_not_replicated_yet() -> None:
    async with transaction_node() as one:
        session = await one.begin_session()
        lag_behind(one)
        adding = asyncio.ensure_future(one.add_partitions(session, TopicPartition(TOPIC, 0)))
        await until(lambda: bool(one.shard.in_flight))
        request = DescribeTransactionsRequest(transactional_ids=[ID, "unknown"])
        described = one.node.call(k65_describe_transactions.API, request)
        assert isinstance(described, Awaitable)
        waiting = asyncio.ensure_future(described)
        await asyncio.sleep(0)
        assert not waiting.done()
        catch_up(one)
        assert await adding == {TopicPartition(TOPIC, 0): E.NONE}
        mine, unknown = (await waiting).transaction_states
        assert (mine.transaction_state, unknown.error_code) == ("Ongoing", E.TRANSACTIONAL_ID_NOT_FOUND)


@on_loop
async def test_lists_are_refused_while_ids_are_loaded() -> None:
    async with transaction_node() as one:
        await one.begin_session()
        await one.coordinator.runtime.close()
        disk, clock, cluster = one.node.disk, one.node.clock, one.node.cluster
        again = TransactionNode(await start_node(disk, clock, cluster, properties=PROPERTIES))
        reply = await again.node.ask(k66_list_transactions.API, ListTransactionsRequest())
        assert reply.error_code == E.COORDINATOR_LOAD_IN_PROGRESS
        await again.loaded()
        reply = await again.node.ask(k66_list_transactions.API, ListTransactionsRequest())
        assert [each.transactional_id for each in reply.transaction_states] == [ID]
        await again.coordinator.runtime.close()


async def with_groups(stack: AsyncExitStack) -> TransactionNode:
    """A node that coordinates groups, too."""
    properties = PROPERTIES | {"offsets.topic.num.partitions": "1"}
    node = await start_node(properties=properties)
    start_groups(node.services, SeededEntropy(), stack)
    one = TransactionNode(node)
    stack.push_async_callback(one.coordinator.runtime.close)
    one.lead()
    node.assign(OFFSETS)
    node.assign(TOPIC)
    node.services.image.topics[TOPIC] = _topic_of(node)
    return one


def _topic_of(node: Any) -> Any:
    """The topic as the metadata have it, as far as committing offsets looks at it."""
    return SimpleNamespace(id=node.cluster.topic_id(TOPIC), name=TOPIC, partitions={0: None})


def commit_request(session: ProducerSession, offset: int) -> TxnOffsetCommitRequest:
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    return TxnOffsetCommitRequest(
        transactional_id=ID,
        group_id="g",
        producer_id=session.producer_id,
        producer_epoch=session.epoch,
        topics=[TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[partition])],
    )


async def committed(one: TransactionNode) -> int:
    """The offset that the group fetches."""
    topics = [OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])]
    reply = await one.node.ask(k09_offset_fetch.API, OffsetFetchRequest(group_id="g", topics=topics), 7)
    return int(reply.topics[0].partitions[0].committed_offset)


@on_loop
async def test_offsets_become_visible_with_the_commit_of_their_transaction_only() -> None:
    async with AsyncExitStack() as stack:
        one = await with_groups(stack)
        session = await one.begin_session()
        for offset, commits, visible in ((5, True, 5), (8, False, 5), (9, True, 9)):
            reply = await one.node.ask(k28_txn_offset_commit.API, commit_request(session, offset))
            assert reply.topics[0].partitions[0].error_code == E.NONE
            assert await committed(one) == (visible if not commits else {5: -1, 9: 5}[offset])
            session = await one.end(session, commits)
            await one.settled()
            assert await committed(one) == visible
        log = one.node.partition(OFFSETS).leader_log
        assert log.last_stable_offset == log.log_end_offset


@on_loop
async def test_producers_of_the_old_kind_add_the_group_first() -> None:
    async with AsyncExitStack() as stack:
        one = await with_groups(stack)
        session = await one.begin_session()
        reply = await one.node.ask(k28_txn_offset_commit.API, commit_request(session, 5), 3)
        assert reply.topics[0].partitions[0].error_code == E.INVALID_TXN_STATE
        add = AddOffsetsToTxnRequest(
            transactional_id=ID, producer_id=session.producer_id, producer_epoch=session.epoch, group_id="g"
        )
        assert (await one.node.ask(k25_add_offsets_to_txn.API, add)).error_code == E.NONE
        reply = await one.node.ask(k28_txn_offset_commit.API, commit_request(session, 5), 3)
        assert reply.topics[0].partitions[0].error_code == E.NONE
        await one.end(session, version=3)
        await one.settled()
        assert await committed(one) == 5


@on_loop
async def test_a_group_coordinator_that_is_not_there_is_a_leader_that_is_not() -> None:
    async with AsyncExitStack() as stack:
        one = await with_groups(stack)
        session = await one.begin_session()
        await one.node.ask(k28_txn_offset_commit.API, commit_request(session, 5))
        one.node.assign(
            OFFSETS, leader=FOLLOWER, leader_epoch=1, partition_epoch=1, replicas=(NODE, FOLLOWER)
        )
        marker = WritableTxnMarker(
            producer_id=session.producer_id,
            producer_epoch=session.epoch + 1,
            transaction_result=True,
            topics=[WritableTxnMarkerTopic(name=OFFSETS, partition_indexes=[0])],
        )
        reply = await one.node.ask(k27_write_txn_markers.API, WriteTxnMarkersRequest(markers=[marker]))
        assert reply.markers[0].topics[0].partitions[0].error_code == E.NOT_LEADER_OR_FOLLOWER


@on_loop
async def test_markers_wait_for_the_replicas_of_their_partition() -> None:
    async with transaction_node() as one:
        session = await one.begin_session()
        await one.produce(session)
        one.node.assign(leader_epoch=1, partition_epoch=1, replicas=(NODE, FOLLOWER))
        marker = WritableTxnMarker(
            producer_id=session.producer_id,
            producer_epoch=session.epoch,
            topics=[WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[0])],
        )
        reply = one.node.call(k27_write_txn_markers.API, WriteTxnMarkersRequest(markers=[marker]))
        assert isinstance(reply, Awaitable)
        waiting = asyncio.ensure_future(reply)
        await asyncio.sleep(0)
        assert not waiting.done()
        one.node.partition().on_follower_fetch(FOLLOWER, 3, 0, one.node.clock.now_ms())
        assert (await waiting).markers[0].topics[0].partitions[0].error_code == E.NONE
