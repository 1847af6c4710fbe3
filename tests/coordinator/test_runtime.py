"""The coordinator's runtime: shards come and go with leadership, nothing is answered before it is safe."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from headrace.coordinator.hosted_shard import Producer, ShardState
from headrace.coordinator.shard import Decision
from headrace.errors import ErrorCode, KafkaError
from headrace.records.batch import batches
from tests.support_coordinator import TOPIC, Coordinator, RememberingShard, record, setting
from tests.support_data import NODE, NOW_MS, DataNode, start_node
from tests.support_log import on_loop


@asynccontextmanager
async def coordinator(node: DataNode | None = None) -> AsyncIterator[Coordinator]:
    made = Coordinator(node or await start_node())
    made.runtime.start()
    yield made
    await made.runtime.close()


async def refusal(awaitable: Any) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        await awaitable
    return caught.value.code


def producer(one: Coordinator, producer_id: int, epoch: int = 0) -> Producer:
    """A producer whose transaction the transaction coordinator knows."""
    log = one.node.partition(TOPIC).leader_log
    return Producer(producer_id, epoch, log.start_verification(producer_id, 0, epoch, False, NOW_MS))


def written(node: DataNode) -> list[tuple[int, int, bool]]:
    """Base offset, count and transactionality of every batch."""
    found = node.partition(TOPIC).leader_log.read(0, 1 << 20).records
    data = b"" if found is None else found.read()
    return [(batch.base_offset, batch.count, batch.is_transactional) for batch in batches(data)]


@on_loop
async def test_a_partition_that_is_not_led_is_not_coordinated() -> None:
    async with coordinator() as one:
        assert await refusal(one.runtime.write(0, setting("a", 1))) is ErrorCode.NOT_COORDINATOR
        assert await refusal(one.runtime.read(0, lambda shard, now: 1)) is ErrorCode.NOT_COORDINATOR
        assert one.runtime.partitions == 5


@on_loop
async def test_what_is_decided_is_written_replayed_and_answered() -> None:
    async with coordinator() as one:
        one.lead()
        assert one.shard.loaded
        assert await one.runtime.write(0, setting("a", 1)) is None
        assert await one.runtime.write(0, setting("a", 2)) == 1
        assert one.shard.values == {"a": 2}
        assert one.shard.offsets == [0, 1]
        assert await one.runtime.read(0, lambda shard, now: dict(shard.values)) == {"a": 2}
        assert written(one.node) == [(0, 1, False), (1, 1, False)]
        assert not await one.differences()


@on_loop
async def test_an_operation_that_refuses_leaves_no_trace() -> None:
    def refuse(shard: RememberingShard, now_ms: int) -> Decision[None]:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    async with coordinator() as one:
        one.lead()
        assert await refusal(one.runtime.write(0, refuse)) is ErrorCode.UNKNOWN_MEMBER_ID
        assert written(one.node) == []


@on_loop
async def test_a_failed_append_changes_nothing_and_is_told() -> None:
    outcomes: list[BaseException | None] = []
    async with coordinator() as one:
        one.lead(config={"max.message.bytes": "200"})
        code = await refusal(one.runtime.write(0, setting("a" * 200, 1, on_done=outcomes.append)))
        assert code is ErrorCode.MESSAGE_TOO_LARGE
        assert one.shard.values == {}
        assert [getattr(error, "code", None) for error in outcomes] == [code]
        await one.runtime.write(0, setting("b", 1, on_done=outcomes.append))
        assert one.shard.values == {"b": 1}
        assert outcomes[1:] == [None]


@on_loop
async def test_records_that_need_not_be_together_are_spread_over_batches() -> None:
    async with coordinator() as one:
        one.lead(config={"max.message.bytes": "400"})
        records = [record(f"key-{number:03}", number) for number in range(20)]
        await one.runtime.write(0, lambda shard, now: Decision(records, None, is_atomic=False))
        assert len(written(one.node)) > 1
        assert sum(count for _, count, _ in written(one.node)) == 20
        assert one.shard.offsets == list(range(20))


@on_loop
async def test_records_of_a_state_that_is_changed_already_are_not_replayed() -> None:
    async with coordinator() as one:
        one.lead()
        await one.runtime.write(0, setting("a", 1, is_replayed=False))
        assert one.shard.values == {}
        assert written(one.node) == [(0, 1, False)]


@on_loop
async def test_writes_that_join_become_one_batch_and_reads_see_them() -> None:
    async with coordinator() as one:
        one.lead()
        futures = [one.runtime.write(0, setting(f"k{n}", n), joins=True) for n in range(10)]
        assert not any(future.done() for future in futures)
        await asyncio.gather(*futures)
        assert written(one.node) == [(0, 10, False)]
        assert len(one.shard.values) == 10
        joined = one.runtime.write(0, setting("late", 1), joins=True)
        assert (await one.runtime.read(0, lambda shard, now: dict(shard.values)))["late"] == 1
        assert joined.done()
        assert not await one.differences()


@on_loop
async def test_joined_writes_that_fail_fail_for_all() -> None:
    async with coordinator() as one:
        one.lead(config={"max.message.bytes": "300"})
        futures = [one.runtime.write(0, setting("x" * 100 + str(n), n), joins=True) for n in range(3)]
        for future in futures:
            assert await refusal(future) is ErrorCode.MESSAGE_TOO_LARGE
        assert one.shard.values == {}


@on_loop
async def test_an_answer_waits_for_the_replicas_and_so_do_reads() -> None:
    async with coordinator() as one:
        one.lead(replicas=(NODE, 2), isr=(NODE, 2))
        write = one.runtime.write(0, setting("a", 1))
        read = one.runtime.read(0, lambda shard, now: shard.values["a"])
        await asyncio.sleep(0)
        assert not write.done()
        assert not read.done()
        one.node.partition(TOPIC).on_follower_fetch(2, 1, 0, NOW_MS)
        assert await write is None
        assert await read == 1


@on_loop
async def test_an_answer_that_waits_too_long_is_given_up_but_the_state_stays() -> None:
    async with coordinator() as one:
        one.lead(replicas=(NODE, 2), isr=(NODE, 2))
        write = one.runtime.write(0, setting("a", 1))
        one.pass_time(1001)
        assert await refusal(write) is ErrorCode.REQUEST_TIMED_OUT
        assert one.shard.values == {"a": 1}


@on_loop
async def test_who_waits_when_the_leader_moves_is_told_so() -> None:
    async with coordinator() as one:
        one.lead(replicas=(NODE, 2), isr=(NODE, 2))
        shard = one.shard
        write = one.runtime.write(0, setting("a", 1))
        joined = one.runtime.write(0, setting("b", 1), joins=True)
        one.lead(leader=2, leader_epoch=1, partition_epoch=1, replicas=(NODE, 2), isr=(NODE, 2))
        assert await refusal(write) is ErrorCode.NOT_COORDINATOR
        assert await refusal(joined) is ErrorCode.NOT_COORDINATOR
        assert shard.unloaded
        assert one.runtime.shards == {}


@on_loop
async def test_state_is_loaded_from_the_log_and_requests_wait_for_that() -> None:
    async with coordinator() as one:
        one.lead()
        for number in range(500):
            one.runtime.write(0, setting(f"key-{number % 50}", number))
        await one.runtime.write(0, setting("key-0", None))
        await one.runtime.write(0, setting("key-1", 1), producer=producer(one, 7))
        before = one.shard.state()
    node = await one.node.restart()
    async with coordinator(node) as again:
        again.lead(leader_epoch=1, partition_epoch=1)
        assert again.runtime.count(ShardState.LOADING) == 1
        code = await refusal(again.runtime.write(0, setting("a", 1)))
        assert code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        shard = await again.loaded()
        assert shard.state() == before
        assert shard.loaded
        assert again.runtime.loads.count == 1


@on_loop
async def test_markers_end_transactions_live_and_in_the_log() -> None:
    async with coordinator() as one:
        one.lead()
        await one.runtime.write(0, setting("kept", 1), producer=producer(one, 7))
        await one.runtime.write(0, setting("lost", 1), producer=producer(one, 8))
        assert one.shard.values == {}
        await one.runtime.complete_transaction(0, 7, 0, True, 1, 1)
        await one.runtime.complete_transaction(0, 8, 0, False, 1, 1)
        assert one.shard.values == {"kept": 1}
        assert not await one.differences()
        assert [is_transactional for _, _, is_transactional in written(one.node)] == [True] * 4
        assert one.node.partition(TOPIC).leader_log.last_stable_offset == 4


@on_loop
async def test_a_marker_of_a_fenced_producer_is_refused_and_not_replayed() -> None:
    async with coordinator() as one:
        one.lead()
        await one.runtime.write(0, setting("kept", 1), producer=producer(one, 7, 5))
        code = await refusal(one.runtime.complete_transaction(0, 7, 4, True, 1, 1))
        assert code is ErrorCode.INVALID_PRODUCER_EPOCH
        assert one.shard.pending == {7: {"kept": 1}}


@on_loop
async def test_a_shard_is_loaded_anew_when_somebody_else_writes_to_its_partition() -> None:
    async with coordinator() as one:
        one.lead()
        await one.runtime.write(0, setting("a", 1))
        other = Coordinator(one.node)
        other.runtime.follow(one.node.partition(TOPIC))
        await other.loaded()
        await other.runtime.write(0, setting("b", 2))
        assert await refusal(one.runtime.write(0, setting("c", 3))) is ErrorCode.NOT_COORDINATOR
        assert (await one.loaded()).values == {"a": 1, "b": 2}
        await other.runtime.close()


@on_loop
async def test_a_record_that_can_not_be_replayed_makes_for_a_new_load() -> None:
    async with coordinator() as one:
        one.lead()
        one.shard.fails_at = "bug"
        assert await refusal(one.runtime.write(0, setting("bug", 3))) is ErrorCode.NOT_COORDINATOR
        assert (await one.loaded()).values == {"bug": 3}


@on_loop
async def test_a_log_that_can_not_be_loaded_is_not_served_until_it_is_led_anew() -> None:
    node = await start_node()
    node.assign(TOPIC, 0)
    node.append(1, TOPIC, 0, keys=[b"\x00\x00no key of ours"])
    async with coordinator(node) as one:
        await asyncio.wait(one.runtime._loads)
        assert one.runtime.count(ShardState.FAILED) == 1
        assert await refusal(one.runtime.write(0, setting("a", 1))) is ErrorCode.NOT_COORDINATOR


@on_loop
async def test_records_of_unknown_types_are_passed_over() -> None:
    node = await start_node()
    node.assign(TOPIC, 0)
    node.append(1, TOPIC, 0, keys=[b"\x00\x63whatever"])
    async with coordinator(node) as one:
        shard = await one.loaded()
        assert shard.values == {}
        await one.runtime.write(0, setting("a", 1))
        assert shard.offsets == [1]


@on_loop
async def test_a_deleted_topic_unloads_its_shards() -> None:
    async with coordinator() as one:
        one.lead()
        shard = one.shard
        one.node.delete_topic(TOPIC)
        assert shard.unloaded
        assert await refusal(one.runtime.write(0, setting("a", 1))) is ErrorCode.NOT_COORDINATOR


@on_loop
async def test_all_shards_can_be_asked_at_once() -> None:
    async with coordinator() as one:
        for index in range(3):
            one.node.assign(TOPIC, index)
        assert await asyncio.gather(*one.runtime.read_all(lambda shard, now: shard.context.partition)) == [
            0,
            1,
            2,
        ]
        await asyncio.gather(*one.runtime.write_all(setting("a", 1)))
        assert [shard.values for shard in one.runtime.active_shards()] == [{"a": 1}] * 3


@on_loop
async def test_what_follows_from_one_write_and_fails_does_not_concern_others() -> None:
    def stumble(error: BaseException | None) -> None:
        raise ValueError("a bug")

    async with coordinator() as one:
        one.lead(replicas=(NODE, 2), isr=(NODE, 2))
        first = one.runtime.write(0, setting("a", 1, on_done=stumble))
        second = one.runtime.write(0, setting("b", 2))
        one.node.partition(TOPIC).on_follower_fetch(2, 2, 0, NOW_MS)
        with pytest.raises(ValueError, match="a bug"):
            await first
        assert await second is None
