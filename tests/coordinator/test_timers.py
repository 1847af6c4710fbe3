"""Timers: by key, put off for nothing, and gone with their shard."""

import asyncio

from headrace.coordinator.shard import Decision, TimedOperation
from headrace.coordinator.timers import TimerQueue
from headrace.errors import ErrorCode, KafkaError
from headrace.system.clock import SystemClock
from headrace.testing.clock import ManualClock
from tests.support_coordinator import Coordinator, record
from tests.support_data import start_node
from tests.support_log import on_loop


class Fired(list[str]):
    """Notes which timers have fired."""

    def by(self, name: str) -> TimedOperation:
        def operation(now_ms: int) -> Decision[None]:
            self.append(name)
            return Decision((), None)

        return operation


async def serving() -> Coordinator:
    one = Coordinator(await start_node())
    one.runtime.start()
    one.lead()
    return one


@on_loop
async def test_a_timer_writes_what_its_operation_decides() -> None:
    one = await serving()
    one.shard.context.timers.schedule("key", 100, lambda now: Decision([record("a", 1)], None))
    one.pass_time(99)
    assert one.shard.values == {}
    one.pass_time(1)
    assert one.shard.values == {"a": 1}
    assert not one.shard.context.timers.is_scheduled("key")
    await one.runtime.close()


@on_loop
async def test_a_timer_is_put_off_brought_forward_and_cancelled() -> None:
    one = await serving()
    timers, fired = one.shard.context.timers, Fired()
    timers.schedule("key", 100, fired.by("first"))
    one.pass_time(60)
    timers.schedule("key", 100, fired.by("later"))
    one.pass_time(60)
    assert fired == []
    timers.schedule("key", 50, fired.by("sooner"))
    one.pass_time(50)
    assert fired == ["sooner"]
    one.pass_time(1000)
    assert fired == ["sooner"]
    timers.schedule("key", 100, fired.by("first"))
    timers.schedule_if_absent("key", 1, fired.by("absent"))
    timers.cancel("key")
    one.pass_time(1000)
    assert fired == ["sooner"]
    await one.runtime.close()


@on_loop
async def test_a_timer_whose_records_could_not_be_written_is_set_again() -> None:
    one = await serving()
    attempts = []

    def operation(now: int) -> Decision[None]:
        attempts.append(now)
        if len(attempts) == 1:
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        return Decision((), None)

    one.shard.context.timers.schedule("key", 10, operation)
    one.pass_time(10)
    assert len(attempts) == 1
    one.pass_time(500)
    assert len(attempts) == 2
    await one.runtime.close()


@on_loop
async def test_timers_end_with_their_shard() -> None:
    one = await serving()
    fired = Fired()
    one.shard.context.timers.schedule("key", 10, fired.by("key"))
    one.lead(leader=2, leader_epoch=1, partition_epoch=1)
    one.pass_time(1000)
    assert fired == []
    await one.runtime.close()


@on_loop
async def test_the_event_loop_wakes_timers_in_real_time() -> None:
    queue = TimerQueue(SystemClock())
    done = asyncio.Event()
    queue.start(5, done.set)
    await asyncio.wait_for(done.wait(), 5)
    queue.close()


@on_loop
async def test_heartbeats_do_not_let_the_queue_grow() -> None:
    clock = ManualClock()
    queue = TimerQueue(clock)
    fired: list[int] = []
    timer = queue.start(45_000, lambda: fired.append(1))
    for _ in range(1000):
        clock.advance(3_000)
        queue.restart(timer, 45_000, lambda: fired.append(1))
        queue.fire_due()
        assert len(queue._heap) == 1
    assert fired == []
    clock.advance(45_000)
    queue.fire_due()
    assert fired == [1]
    queue.close()
