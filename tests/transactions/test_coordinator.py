"""Transactions from their first batch to their markers, on a node whose time stands still."""

import asyncio

import pytest

from headrace.errors import ErrorCode
from headrace.log.log_reads import Isolation
from headrace.records.control import ControlType
from headrace.transactions.end_transaction import Ending
from headrace.transactions.metadata import EPOCH_MAX, TransactionMetadata
from headrace.transactions.shard import ProducerSession
from headrace.transactions.states import TransactionState
from headrace.types import TopicPartition
from tests.support_data import NODE, TOPIC, start_node
from tests.support_log import on_loop
from tests.support_transactions import (
    ID,
    PROPERTIES,
    TIMEOUT_MS,
    TRANSACTIONS,
    TransactionNode,
    refusal,
    transaction_node,
    until,
)

S = TransactionState
E = ErrorCode
OTHER = "other"


@on_loop
async def test_with_version_two_a_batch_begins_the_transaction_and_its_end_raises_the_epoch() -> None:
    async with transaction_node() as one:
        session = await one.begin_session()
        assert session == (0, 0)
        assert (await one.produce(session)).error_code == E.NONE
        assert one.metadata().state is S.ONGOING
        assert one.metadata().partitions == {TopicPartition(TOPIC, 0)}
        log = one.node.partition().leader_log
        assert (log.high_watermark, log.last_stable_offset) == (2, 0)
        assert await one.end(session) == (0, 1)
        assert (await one.settled()).state is S.COMPLETE_COMMIT
        assert one.markers() == [(2, ControlType.COMMIT, 1)]
        assert log.last_stable_offset == 3


@on_loop
async def test_before_version_two_partitions_are_added_by_the_producer_and_the_epoch_stays() -> None:
    async with transaction_node(version=0) as one:
        session = await one.begin_session()
        name = TopicPartition(TOPIC, 0)
        assert await one.add_partitions(session, name) == {name: E.NONE}
        assert (await one.produce(session, version=11)).error_code == E.NONE
        assert await one.end(session, commit=False, version=4) == (-1, -1)
        assert (await one.settled()).state is S.COMPLETE_ABORT
        assert one.markers() == [(2, ControlType.ABORT, 0)]
        read = one.node.partition().leader_log.read(0, 1 << 20, Isolation.COMMITTED)
        assert [(each.producer_id, each.first_offset) for each in read.aborted or ()] == [(0, 0)]


@pytest.mark.parametrize(
    ("version", "code"),
    [(10, E.INVALID_TXN_STATE), (11, E.TRANSACTION_ABORTABLE)],
)
def test_a_batch_of_a_partition_that_was_not_added_is_refused(version: int, code: ErrorCode) -> None:
    @on_loop
    async def run() -> None:
        async with transaction_node(version=1) as one:
            session = await one.begin_session()
            answer = await one.produce(session, version=version)
            assert (answer.error_code, answer.base_offset, answer.log_start_offset) == (code, -1, -1)
            assert one.node.partition().leader_log.log_end_offset == 0

    run()


@on_loop
async def test_verification_may_be_switched_off() -> None:
    async with transaction_node(1, transaction_partition_verification_enable="false") as one:
        session = await one.begin_session()
        one.node.partition().leader_log.producers.settings.transaction_verification_enabled = False
        assert (await one.produce(session, version=10)).error_code == E.NONE
        assert one.metadata().state is S.EMPTY


@on_loop
async def test_batches_after_the_first_ask_nobody() -> None:
    async with transaction_node() as one:
        session = await one.begin_session()
        verifier = one.node.services.verifier
        assert verifier is not None
        for sequence in (0, 2, 4):
            assert (await one.produce(session, sequence=sequence)).error_code == E.NONE
        assert (verifier.counters.verifications, verifier.counters.failures) == (1, 0)


@on_loop
async def test_a_second_producer_shuts_out_the_first_and_ends_what_it_left() -> None:
    async with transaction_node() as one:
        first = await one.begin_session()
        await one.produce(first)
        assert await refusal(one.begin_session()) is E.CONCURRENT_TRANSACTIONS
        await one.settled()
        second = await one.begin_session()
        assert second == (0, 2)
        assert one.markers() == [(2, ControlType.ABORT, 1)]
        assert (await one.produce(first, sequence=2)).error_code == E.INVALID_PRODUCER_EPOCH
        assert await refusal(one.end(first)) is E.PRODUCER_FENCED
        assert await refusal(one.end(first, version=1)) is E.INVALID_PRODUCER_EPOCH
        assert (await one.produce(second)).error_code == E.NONE


@on_loop
async def test_a_delayed_batch_does_not_enter_the_next_transaction() -> None:
    async with transaction_node() as one:
        session = await one.begin_session()
        await one.produce(session)
        following = await one.end(session)
        await one.settled()
        assert (await one.produce(following)).error_code == E.NONE
        late = await one.produce(session, sequence=2)
        assert late.error_code == E.INVALID_PRODUCER_EPOCH
        assert one.node.partition().leader_log.log_end_offset == 5


@on_loop
async def test_used_up_epochs_lead_to_another_producer_id() -> None:
    async with transaction_node() as one:
        await one.begin_session()
        _jump_to_epoch(one, EPOCH_MAX - 1)
        last = ProducerSession(0, EPOCH_MAX - 1)
        await one.produce(last)
        following = await one.end(last)
        assert following == (1, 0)
        assert (await one.settled()).producer_id == 1
        assert one.markers() == [(2, ControlType.COMMIT, EPOCH_MAX)]
        assert await one.end(last) == (1, 0)
        assert (await one.produce(following)).error_code == E.NONE


def _jump_to_epoch(one: TransactionNode, epoch: int) -> None:
    """As if the producer had had very many transactions."""
    now_ms = one.node.clock.now_ms()
    jumped = TransactionMetadata(ID, 0, TIMEOUT_MS, now_ms, producer_epoch=epoch, previous_producer_id=0)
    written = one.coordinator.runtime.write(0, lambda shard, _: shard._write(jumped, None))
    assert written.done()


@on_loop
async def test_a_crash_between_outcome_and_markers_is_made_good_after_the_restart() -> None:
    async with transaction_node() as one:
        session = await one.begin_session()
        await one.produce(session)
        one.node.clock.advance(5)
        await one.end(session)
        # The reply is there, the markers are not: they come in the loop's next turn.
        assert one.markers() == []
        again = await one.restart()
        assert (await again.settled()).state is S.COMPLETE_COMMIT
        assert again.markers() == [(2, ControlType.COMMIT, 1)]
        assert not await again.differences()
        await again.coordinator.runtime.close()


@on_loop
async def test_an_open_transaction_survives_a_restart() -> None:
    async with transaction_node() as one:
        session = await one.begin_session()
        await one.produce(session)
        again = await one.restart()
        assert again.metadata().state is S.ONGOING
        assert (await again.produce(session, sequence=2)).error_code == E.NONE
        assert await again.end(session) == (0, 1)
        await again.settled()
        await again.coordinator.runtime.close()


@on_loop
async def test_a_deleted_topic_needs_no_marker() -> None:
    async with transaction_node(topics=(TOPIC, OTHER)) as one:
        session = await one.begin_session()
        await one.produce(session)
        await one.produce(session, topic=OTHER)
        one.node.delete_topic(OTHER)
        await one.end(session)
        assert (await one.settled()).state is S.COMPLETE_COMMIT
        assert one.markers() == [(2, ControlType.COMMIT, 1)]


@on_loop
async def test_markers_are_sent_until_the_partition_has_a_leader() -> None:
    async with transaction_node(topics=(TOPIC, OTHER)) as one:
        session = await one.begin_session()
        await one.produce(session)
        await one.produce(session, topic=OTHER)
        one.node.assign(OTHER, leader=-1, leader_epoch=1, partition_epoch=1)
        await one.end(session)
        await until(lambda: bool(one.markers()))
        assert one.metadata().state is S.PREPARE_COMMIT
        assert (one.coordinator.sender.pending, one.coordinator.sender.waiting_for_leader) == (1, 1)
        assert await refusal(one.begin_session()) is E.CONCURRENT_TRANSACTIONS
        assert await refusal(one.end(session)) is E.CONCURRENT_TRANSACTIONS
        one.node.assign(OTHER, leader=NODE, leader_epoch=2, partition_epoch=2)
        assert (await one.settled()).state is S.COMPLETE_COMMIT
        assert one.markers(OTHER) == [(2, ControlType.COMMIT, 1)]
        assert one.markers() == [(2, ControlType.COMMIT, 1)]
        assert one.coordinator.sender.pending == 0


@on_loop
async def test_time_outs_abort_and_shut_out() -> None:
    async with transaction_node() as one:
        session = await one.begin_session(timeout_ms=1_000)
        await one.produce(session)
        one.node.clock.advance(1_000)
        await one.coordinator.abort_timed_out()
        assert one.metadata().state is S.ONGOING
        one.node.clock.advance(1)
        await one.coordinator.abort_timed_out()
        assert (await one.settled()).state is S.COMPLETE_ABORT
        assert one.markers() == [(2, ControlType.ABORT, 1)]
        assert (await one.produce(session, sequence=2)).error_code == E.INVALID_PRODUCER_EPOCH
        assert await refusal(one.end(session)) is E.INVALID_TXN_STATE


@on_loop
async def test_idle_ids_are_forgotten_and_open_ones_are_not() -> None:
    async with transaction_node(transactional_id_expiration_ms="5000") as one:
        await one.begin_session("idle")
        session = await one.begin_session()
        await one.produce(session)
        one.node.clock.advance(4_999)
        await one.coordinator.remove_expired()
        assert set(one.shard.transactions) == {"idle", ID}
        one.node.clock.advance(1)
        await one.coordinator.remove_expired()
        assert set(one.shard.transactions) == {ID}
        assert not await one.differences()
        assert await one.begin_session("idle") == (2, 0)


@on_loop
async def test_many_idle_ids_are_forgotten_in_several_batches() -> None:
    async with transaction_node(transactional_id_expiration_ms="5000") as one:
        for number in range(1_200):
            await one.begin_session(f"idle-{number}")
        one.node.clock.advance(5_000)
        await one.coordinator.remove_expired()
        assert not one.shard.transactions


@on_loop
async def test_nothing_is_coordinated_without_the_topic() -> None:
    one = TransactionNode(await start_node(properties=PROPERTIES))
    one.node.assign()
    assert await refusal(one.begin_session()) is E.NOT_COORDINATOR
    answer = await one.produce(ProducerSession(0, 0))
    assert answer.error_code == E.NOT_ENOUGH_REPLICAS
    assert answer.error_message == (
        "Unable to verify the partition has been added to the transaction. "
        "Underlying error: COORDINATOR_NOT_AVAILABLE"
    )
    await one.coordinator.runtime.close()


@on_loop
async def test_a_coordinator_that_lost_its_partition_refuses_and_forgets() -> None:
    async with transaction_node() as one:
        session = await one.begin_session()
        await one.produce(session)
        one.lead(leader=2, leader_epoch=1, partition_epoch=1, replicas=(NODE, 2))
        assert await refusal(one.end(session)) is E.NOT_COORDINATOR
        one.lead(leader=NODE, leader_epoch=2, partition_epoch=2, replicas=(NODE, 2), isr=(NODE,))
        await one.loaded()
        assert await one.end(session) == (0, 1)
        await one.settled()
        assert one.markers() == [(2, ControlType.COMMIT, 1)]


@on_loop
async def test_an_outcome_is_answered_and_told_when_the_replicas_have_it() -> None:
    async with transaction_node() as one:
        session = await one.begin_session()
        await one.produce(session)
        one.lead(leader_epoch=1, partition_epoch=1, replicas=(NODE, 2))
        coordinator = one.node.partition(TRANSACTIONS)
        end = coordinator.leader_log.log_end_offset
        coordinator.on_follower_fetch(2, end, 0, one.node.clock.now_ms())
        request = one.coordinator.end(_ending(session))
        assert not request.done()
        assert await refusal(one.begin_session()) is E.CONCURRENT_TRANSACTIONS
        assert one.markers() == []
        coordinator.on_follower_fetch(2, end + 1, 0, one.node.clock.now_ms())
        assert await request == (0, 1)
        await until(lambda: bool(one.markers()))
        await until(lambda: coordinator.leader_log.log_end_offset == end + 2)
        coordinator.on_follower_fetch(2, end + 2, 0, one.node.clock.now_ms())
        await until(lambda: one.coordinator.sender.pending == 0)


def _ending(session: ProducerSession) -> Ending:
    return Ending(ID, session.producer_id, session.epoch, True, 2)


@on_loop
async def test_an_outcome_that_was_not_replicated_in_time_is_carried_out_when_it_is() -> None:
    async with transaction_node(request_timeout_ms="1000") as one:
        session = await one.begin_session()
        await one.produce(session)
        one.lead(leader_epoch=1, partition_epoch=1, replicas=(NODE, 2))
        coordinator = one.node.partition(TRANSACTIONS)
        end = coordinator.leader_log.log_end_offset
        coordinator.on_follower_fetch(2, end, 0, one.node.clock.now_ms())
        request = one.coordinator.end(_ending(session))
        for _ in range(3):
            one.node.clock.advance(1_000)
            one.coordinator.runtime.timers.fire_due()
            await asyncio.sleep(0)
        assert await refusal(request) is E.COORDINATOR_NOT_AVAILABLE
        assert await refusal(one.end(session)) is E.CONCURRENT_TRANSACTIONS
        assert one.markers() == []
        coordinator.on_follower_fetch(2, end + 1, 0, one.node.clock.now_ms())
        await until(lambda: bool(one.markers()))
        coordinator.on_follower_fetch(2, end + 2, 0, one.node.clock.now_ms())
        await until(lambda: one.coordinator.sender.pending == 0)
        assert one.metadata().state is S.COMPLETE_COMMIT
        assert one.markers() == [(2, ControlType.COMMIT, 1)]


@on_loop
async def test_a_lost_partition_leaves_its_outcomes_to_the_next_coordinator() -> None:
    async with transaction_node(topics=(TOPIC, OTHER)) as one:
        session = await one.begin_session()
        await one.produce(session, topic=OTHER)
        one.node.assign(OTHER, leader=-1, leader_epoch=1, partition_epoch=1)
        await one.end(session)
        await until(lambda: one.coordinator.sender.pending == 1)
        one.lead(leader=2, leader_epoch=1, partition_epoch=1, replicas=(NODE, 2))
        assert one.coordinator.sender.pending == 0
        one.node.assign(OTHER, leader=NODE, leader_epoch=2, partition_epoch=2)
        assert one.markers(OTHER) == []
        one.lead(leader=NODE, leader_epoch=2, partition_epoch=2, replicas=(NODE, 2), isr=(NODE,))
        await one.loaded()
        await one.settled()
        assert one.markers(OTHER) == [(2, ControlType.COMMIT, 1)]
