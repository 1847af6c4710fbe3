"""The short way of fetches: it answers as the handler does, byte for byte, or leaves it to it."""

import asyncio
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final

import pytest

from headrace.api.fetch_shortcut import UNUSED_MAX
from headrace.api.k01_fetch import API
from headrace.config.node import NodeConfig
from headrace.log.append_origin import AppendOrigin
from headrace.protocol.frame import SIZE_BYTES, decode_response, encode_request
from headrace.protocol.messages.fetch import FetchRequest, FetchResponse
from headrace.records.control import ControlType
from headrace.replication.partition import Partition
from tests.support_admin import Client
from tests.support_data import PROPERTIES, TOPIC, DataNode, batch, start_node, topic_id_of
from tests.support_fetch import ALL_VERSIONS, LATEST, fetch_request, wanted
from tests.support_log import marker, on_loop

SESSIONS_SINCE: Final = 7
FETCHED_EPOCH_SINCE: Final = 12
LONG_MS: Final = 600_000


@dataclass(frozen=True)
class Habit:
    """What stays the same in the requests of a client."""

    version: int = LATEST
    topic: str = TOPIC
    partitions: tuple[int, ...] = (0,)
    max_wait_ms: int = LONG_MS
    min_bytes: int = 1
    max_bytes: int = 10_000
    partition_max_bytes: int = 10_000
    committed: bool = False
    leader_epoch: int = -1
    last_fetched_epoch: int = -1
    client_id: str | None = "client"
    in_session: bool = False

    def request(self, offset: int, session: tuple[int, int] = (0, -1), *, lists: bool = True) -> FetchRequest:
        partitions = [
            wanted(
                offset,
                index,
                max_bytes=self.partition_max_bytes,
                leader_epoch=self.leader_epoch,
                last_fetched_epoch=self.last_fetched_epoch if self.version >= FETCHED_EPOCH_SINCE else -1,
            )
            for index in self.partitions
        ]
        return fetch_request(
            *(partitions if lists else ()),
            topic=self.topic,
            max_wait_ms=self.max_wait_ms,
            min_bytes=self.min_bytes,
            max_bytes=self.max_bytes,
            committed=self.committed,
            session=session,
        )

    def frame(self, request: FetchRequest, correlation_id: int) -> bytes:
        return encode_request(request, self.version, correlation_id, self.client_id)[SIZE_BYTES:]


@dataclass(frozen=True)
class Asks:
    """One request: its offset counted from the log's end, and how it differs from those before."""

    behind: int = 0
    lists: bool = True
    skips_epoch: bool = False
    flip: tuple[int, int] | None = None


CHANGES: Final = (
    "append",
    "append",
    "append",
    "append",
    "abort",
    "delete",
    "recreate",
    "recreate",
    "resign",
    "lead",
    "lead",
    "lead",
    "trim",
    "roll",
    "configure",
    "limit",
    "leave",
)
WALKS: Final = 12
STEPS: Final = 120


def _habit(random: Random) -> Habit:
    """Mostly a client like others, sometimes a strange one."""
    usual = Habit(
        version=random.choice(ALL_VERSIONS),
        committed=random.random() < 0.3,
        max_wait_ms=random.choice([0, LONG_MS]),
        in_session=random.random() < 0.6,
        leader_epoch=random.choice([-1, -1, 0]),
        last_fetched_epoch=random.choice([-1, -1, 0, 3]),
        client_id=random.choice(["client", "another", None]),
    )
    if random.random() < 0.6:
        return usual
    return replace(
        usual,
        topic=random.choice([TOPIC, "missing"]),
        partitions=random.choice([(1,), (0, 1), (9,)]),
        min_bytes=random.choice([-1, 0, 1, 200]),
        max_bytes=random.choice([100_000, 50, 0, -1]),
        partition_max_bytes=random.choice([100_000, 100, 0, -1]),
    )


def _asks(random: Random) -> Asks:
    is_odd = random.random() < 0.05
    return Asks(
        behind=random.choice([0, 0, 1, 2, 3, 1000, -3] if is_odd else [0, 0, 0, 1, 2, 1000]),
        lists=random.random() < 0.7,
        skips_epoch=is_odd and random.random() < 0.5,
        flip=(random.randrange(120), random.randrange(256)) if is_odd and random.random() < 0.5 else None,
    )


def _life(random: Random) -> list[str | Asks]:
    return [
        _asks(random) if random.random() < 0.7 else random.choice(CHANGES)
        for _ in range(random.randint(5, 25))
    ]


class Side:
    """A node with one client, whose requests may be remembered or not."""

    def __init__(self, node: DataNode, *, remembers: bool) -> None:
        self.node = node
        self.remembers = remembers
        self.epoch = 0
        self.client = Client(node.services, [API])
        for index in (0, 1):
            node.assign(TOPIC, index)

    def send(self, frame: bytes) -> None:
        connection = self.client.connection
        if not self.remembers:
            connection.shortcut = None
        if connection.close_reason is not None:
            self.change("leave")
        self.client.send_frame(frame)

    def session_id(self) -> int:
        """That of the last reply; 0 if it has none."""
        frames = [slot.frame for slot in self.client.connection.slots if slot.frame is not None]
        return (
            0
            if not frames
            else decode_response(FetchResponse, self.version, frames[-1][SIZE_BYTES:])[1].session_id
        )

    version = LATEST

    def change(self, what: str) -> None:
        node, self.epoch = self.node, self.epoch + 1
        held = node.replicas.get(TOPIC, 0)
        is_led = held is not None and held.is_leader
        if what in ("lead", "resign", "recreate") and held is None:
            what = "recreate"
        if what == "leave":
            self.client.connection.close("gone")
            stats = self.client.dispatch.stats
            self.client = Client(node.services, [API])
            self.client.dispatch.stats[API.name].errors.update(stats[API.name].errors)
        elif what in ("delete", "recreate"):
            if held is not None:
                node.delete_topic()
            if what == "recreate":
                for index in (0, 1):
                    node.assign(TOPIC, index, leader_epoch=self.epoch, partition_epoch=self.epoch)
        elif what in ("resign", "lead"):
            leader = 1 if what == "lead" else 2
            node.assign(leader=leader, leader_epoch=self.epoch, partition_epoch=self.epoch)
        elif what == "limit":
            node.services.config = NodeConfig(PROPERTIES | {"fetch.max.bytes": str(1024 + self.epoch)})
        elif what == "configure" and held is not None:
            node.configure({"max.message.bytes": str(1_000_000 + self.epoch)})
        elif is_led and held is not None:
            log = held.leader_log
            if what == "append":
                node.append(2, value=bytes(300 * (self.epoch % 3)))
            elif what == "abort":
                self._abort(held)
            elif what == "trim":
                held.delete_records(-1)
            elif what == "roll":
                log.roll(node.clock.now_ms())

    def _abort(self, partition: Partition) -> None:
        producer_id, now_ms = 1000 + self.epoch, self.node.clock.now_ms()
        guard = partition.leader_log.start_verification(producer_id, 0, 0, False, now_ms)
        data = bytearray(batch(2, producer_id=producer_id, epoch=0, sequence=0, transactional=True))
        partition.append(data, 1, now_ms, guard=guard)
        end = marker(producer_id, ControlType.ABORT)
        partition.append(end, 1, now_ms, origin=AppendOrigin.COORDINATOR, transaction_version=1)

    def seen(self) -> tuple[object, ...]:
        """Everything that has come of it so far."""
        connection, services = self.client.connection, self.node.services
        slots = [(slot.frame, slot.is_discarded) for slot in connection.slots]
        stats = self.client.dispatch.stats[API.name]
        counted = [
            [getattr(topic.counters, name) for name in topic.counters.__slots__]
            for topic in self.node.replicas.topics.values()
        ]
        sessions = services.fetch_sessions
        known = [
            (each.id, each.epoch, each.used_ms, [_fields(target) for target in each.targets.values()])
            for each in sessions._sessions.values()
        ]
        waiting = [
            len(partition.parked)
            for topic in self.node.replicas.topics.values()
            for partition in topic.partitions.values()
        ]
        return (
            slots,
            connection.close_reason is not None,
            connection.client_id,
            stats.count,
            stats.errors,
            counted,
            known,
            waiting,
        )


def _fields(target: Any) -> list[object]:
    return [getattr(target, name) for name in target.__slots__]


class Pair:
    """The two sides, asked the same."""

    def __init__(self, remembering: Side, plain: Side) -> None:
        self.sides = (remembering, plain)
        self.correlation_id = 0

    def change(self, what: str) -> None:
        for side in self.sides:
            side.change(what)

    async def compare(self) -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        remembering, plain = (side.seen() for side in self.sides)
        assert remembering == plain

    async def send(self, habit: Habit, request: FetchRequest, flip: tuple[int, int] | None = None) -> None:
        self.correlation_id += 1
        frame = bytearray(habit.frame(request, self.correlation_id))
        if flip is not None:
            frame[-1 - flip[0] % len(frame)] = flip[1]
        for side in self.sides:
            side.version = habit.version
            side.send(bytes(frame))
        await self.compare()

    async def live(self, habit: Habit, life: list[str | Asks]) -> None:
        """One habit of the client, as long as it lasts."""
        session, epoch = 0, 0
        for step in life:
            if isinstance(step, str):
                self.change(step)
                await self.compare()
                continue
            held = self.sides[1].node.replicas.get(TOPIC, habit.partitions[0])
            end = 0 if held is None or held.log is None else held.log.log_end_offset
            offset = max(0, end - step.behind)
            if not habit.in_session or habit.version < SESSIONS_SINCE:
                await self.send(habit, habit.request(offset), step.flip)
                continue
            if session == 0:
                await self.send(
                    replace(habit, max_wait_ms=0), replace(habit, max_wait_ms=0).request(offset, (0, 0))
                )
                session, epoch = self.sides[1].session_id(), 1
                continue
            asked = (session, epoch + step.skips_epoch)
            await self.send(habit, habit.request(offset, asked, lists=step.lists), step.flip)
            epoch += not step.skips_epoch


@pytest.mark.parametrize("seed", range(WALKS))
@on_loop
async def test_answers_counts_and_sessions_are_the_same_with_and_without_memory(seed: int) -> None:
    random = Random(seed)
    pair = Pair(Side(await start_node(), remembers=True), Side(await start_node(), remembers=False))
    for _ in range(STEPS // 10):
        await pair.live(_habit(random), _life(random))
        pair.change("lead")
    pair.change("leave")
    await pair.compare()


def counting_client(node: DataNode) -> tuple[Client, list[int]]:
    """A client, and the versions of the requests that the handler has seen."""
    handled: list[int] = []

    def handle(services: Any, context: Any, request: Any) -> Any:
        handled.append(context.version)
        return API.handle(services, context, request)

    return Client(node.services, [replace(API, handle=handle)]), handled


@pytest.mark.parametrize("version", ALL_VERSIONS)
@on_loop
async def test_a_request_like_the_one_before_does_not_pass_the_handler(version: int) -> None:
    node = await start_node()
    node.assign()
    client, handled = counting_client(node)
    habit = Habit(version, max_wait_ms=0)
    for offset in range(5):
        client.send_frame(habit.frame(habit.request(offset), offset))
        node.append()
    assert handled == [version]
    assert [slot.is_answered for slot in client.connection.slots] == [True] * 5


@pytest.mark.parametrize("version", [version for version in ALL_VERSIONS if version >= SESSIONS_SINCE])
@on_loop
async def test_a_request_of_a_session_does_not_pass_the_handler_either(version: int) -> None:
    node = await start_node()
    node.assign()
    client, handled = counting_client(node)
    habit = Habit(version, max_wait_ms=0)
    client.send_frame(habit.frame(habit.request(0, (0, 0)), 0))
    session = client.reply(FetchResponse, version)[1].session_id
    for epoch in range(1, 9):
        lists = bool(epoch % 4)
        client.send_frame(habit.frame(habit.request(0, (session, epoch), lists=lists), epoch))
    assert handled == [version] * 3
    assert client.reply(FetchResponse, version)[1].error_code == 0


@on_loop
async def test_a_remembered_fetch_waits_for_an_append_and_leaves_nothing_behind() -> None:
    node = await start_node()
    node.assign()
    client, handled = counting_client(node)
    habit = Habit()
    for offset in range(4):
        client.send_frame(habit.frame(habit.request(offset), offset))
        assert not client.connection.slots[-1].is_answered
        node.append()
        await asyncio.sleep(0)
        assert client.connection.slots[-1].is_answered
    assert len(handled) == 1
    assert not node.partition().parked


@on_loop
async def test_a_client_that_leaves_takes_its_waiting_fetch_with_it() -> None:
    node = await start_node()
    node.assign()
    client, _ = counting_client(node)
    habit = Habit()
    for correlation_id in range(3):
        client.send_frame(habit.frame(habit.request(0), correlation_id))
    assert len(node.partition().parked) == 3
    client.connection.close("gone")
    await asyncio.sleep(0)
    assert not node.partition().parked


@on_loop
async def test_a_client_that_is_never_the_same_is_not_followed_for_good() -> None:
    node = await start_node()
    node.assign()
    client, handled = counting_client(node)
    for number in range(UNUSED_MAX + 1):
        fickle = Habit(max_wait_ms=0, min_bytes=number)
        client.send_frame(fickle.frame(fickle.request(0), number))
    handled.clear()
    habit = Habit(max_wait_ms=0, client_id="settled at last")
    for number in range(5):
        client.send_frame(habit.frame(habit.request(0), number))
    assert len(handled) == 5


@on_loop
async def test_what_was_forgotten_passes_the_handler_again() -> None:
    node = await start_node()
    node.assign()
    client, handled = counting_client(node)
    habit = Habit(max_wait_ms=0)
    for number in range(3):
        client.send_frame(habit.frame(habit.request(0), number))
        client.connection.shortcut.forget()
    assert len(handled) == 3


@on_loop
async def test_a_topic_made_anew_is_not_taken_for_the_old_one() -> None:
    node = await start_node()
    node.assign()
    client, handled = counting_client(node)
    habit = Habit(version=12, max_wait_ms=0)
    for number in range(3):
        client.send_frame(habit.frame(habit.request(0), number))
    node.delete_topic()
    node.assign(topic_id=topic_id_of(TOPIC, 1))
    node.append(3)
    client.send_frame(habit.frame(habit.request(0), 3))
    assert len(handled) == 2
    (result,) = client.reply(FetchResponse, 12)[1].responses[0].partitions
    assert result.high_watermark == 3
