"""The short way of produce requests: it answers as the handler does, byte for byte, or leaves it to it."""

import asyncio
from dataclasses import dataclass, replace
from typing import Any, Final, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.api.k00_produce import API
from headrace.api.produce_shortcut import CHANGES_MAX, REMEMBERED_MAX, ProduceMemory
from headrace.protocol.frame import SIZE_BYTES, encode_request
from headrace.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.records.compression import Compression
from tests.support_admin import Client
from tests.support_data import NOW_MS, TOPIC, DataNode, batch, start_node, topic_id_of
from tests.support_log import content, on_loop

ALL_VERSIONS: Final = range(API.versions[0], API.versions[1] + 1)
BATCHES: Final = (
    batch(value=b"x"),
    batch(value=bytes(100)),
    batch(value=bytes(9000)),
    batch(3),
    batch(200),
    batch(2, compression=Compression.LZ4),
    batch(2, compression=Compression.ZSTD),
    batch(timestamp=NOW_MS + 10_000_000),
    batch(producer_id=7, epoch=0, sequence=0),
    batch(producer_id=7, epoch=0, sequence=1),
    batch(producer_id=7, epoch=0, sequence=5),
    batch(keys=[None]),
    batch() + batch(),
    batch()[:-1],
    b"",
)


@dataclass(frozen=True)
class Sent:
    """One request; `flips` are bytes of its frame that are changed, by their distance from its end."""

    version: int = API.versions[1]
    topic: str = TOPIC
    partition: int = 0
    acks: int = -1
    client_id: str | None = "client"
    records: bytes | None = BATCHES[0]
    flips: tuple[tuple[int, int], ...] = ()

    def frame(self, correlation_id: int) -> bytes:
        request = ProduceRequest(
            acks=self.acks,
            timeout_ms=1000,
            topic_data=[
                TopicProduceData(
                    name=self.topic,
                    topic_id=topic_id_of(self.topic),
                    partition_data=[PartitionProduceData(index=self.partition, records=self.records)],
                )
            ],
        )
        frame = bytearray(encode_request(request, self.version, correlation_id, self.client_id)[SIZE_BYTES:])
        for distance, value in self.flips:
            frame[-1 - distance % len(frame)] = value
        return bytes(frame)


CHANGES: Final = ("timestamps", "flush", "plain", "recreate", "resign", "lead")
sent = st.builds(
    Sent,
    version=st.sampled_from(ALL_VERSIONS),
    topic=st.sampled_from([TOPIC, "other", "missing", "__consumer_offsets"]),
    partition=st.sampled_from([0, 1, 9]),
    acks=st.sampled_from([-1, 0, 1, 2]),
    client_id=st.sampled_from(["client", "another", None]),
    records=st.one_of(st.sampled_from(BATCHES), st.none()),
)
flips = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=1).map(tuple)
# Most clients say the same over and over: that is what is remembered.
phases = st.lists(
    st.one_of(
        st.sampled_from(CHANGES),
        st.tuples(sent, st.lists(st.tuples(st.sampled_from(BATCHES), flips), min_size=1, max_size=5)),
    ),
    max_size=6,
)


class Side:
    """A node with one client, whose requests may be remembered or not."""

    def __init__(self, node: DataNode, *, remembers: bool) -> None:
        self.node = node
        self.remembers = remembers
        self.client = Client(node.services, [API])
        self.epoch = 0
        for topic in (TOPIC, "other", "__consumer_offsets"):
            for index in (0, 1):
                node.assign(topic, index)

    def send(self, frame: bytes) -> tuple[object, ...]:
        """A request's outcome, and what was counted."""
        connection = self.client.connection
        if not self.remembers or connection.close_reason is not None:
            connection.shortcut = None
        connection.slots.clear()
        connection.close_reason = None
        self.client.send_frame(frame)
        slots = [(slot.frame, slot.is_discarded) for slot in connection.slots]
        stats = self.client.dispatch.stats[API.name]
        counted = [
            [getattr(topic.counters, name) for name in topic.counters.__slots__]
            for topic in self.node.replicas.topics.values()
        ]
        return slots, connection.close_reason, connection.client_id, stats.count, stats.errors, counted

    def change(self, what: str) -> None:
        node, self.epoch = self.node, self.epoch + 1
        if what == "recreate":
            node.delete_topic()
            for index in (0, 1):
                node.assign(TOPIC, index, leader_epoch=self.epoch, partition_epoch=self.epoch)
        elif what in ("resign", "lead"):
            leader = 1 if what == "lead" else 2
            node.assign(leader=leader, leader_epoch=self.epoch, partition_epoch=self.epoch)
        else:
            config = {
                "timestamps": {"message.timestamp.type": "LogAppendTime"},
                "flush": {"flush.messages": "1"},
            }
            node.configure(config.get(what, {}))

    def stored(self) -> list[bytes]:
        logs = [self.node.partition(topic, index).log for topic in (TOPIC, "other") for index in (0, 1)]
        return [b"" if log is None else content(log) for log in logs]


async def both_sides() -> tuple[Side, Side]:
    return Side(await start_node(), remembers=True), Side(await start_node(), remembers=False)


@given(phases)
def test_answers_counts_and_logs_are_the_same_with_and_without_memory(
    steps: list[str | tuple[Sent, list[tuple[bytes, tuple[tuple[int, int], ...]]]]],
) -> None:
    async def compare() -> None:
        remembering, plain = await both_sides()
        correlation_id = 0
        for step in steps:
            if isinstance(step, str):
                remembering.change(step)
                plain.change(step)
                continue
            first, variations = step
            for records, flipped in [(first.records, ()), (BATCHES[0], ()), *variations]:
                correlation_id += 1
                frame = replace(first, records=records, flips=flipped).frame(correlation_id)
                assert remembering.send(frame) == plain.send(frame)
        assert remembering.stored() == plain.stored()

    on_loop(compare)()


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
    for correlation_id, records in enumerate([BATCHES[0], BATCHES[1], BATCHES[2], BATCHES[3], BATCHES[4]]):
        client.send_frame(Sent(version, records=records).frame(correlation_id))
    assert handled == [version]
    assert node.partition().leader_log.log_end_offset == 1 + 1 + 1 + 3 + 200


@on_loop
async def test_partitions_that_take_turns_are_all_remembered() -> None:
    node = await start_node()
    for index in range(3):
        node.assign(TOPIC, index)
    client, handled = counting_client(node)
    for correlation_id in range(30):
        client.send_frame(Sent(partition=correlation_id % 3).frame(correlation_id))
    assert len(handled) == 3
    assert [node.partition(TOPIC, index).leader_log.log_end_offset for index in range(3)] == [10] * 3


@on_loop
async def test_what_was_forgotten_passes_the_handler_again() -> None:
    node = await start_node()
    node.assign()
    client, handled = counting_client(node)
    for correlation_id in range(3):
        client.send_frame(Sent().frame(correlation_id))
        cast(ProduceMemory, client.connection.shortcut).forget()
    assert len(handled) == 3


@on_loop
async def test_a_client_that_is_never_the_same_for_long_is_not_followed_for_good() -> None:
    node = await start_node()
    node.assign()
    client, handled = counting_client(node)
    kinds = [Sent(client_id="c"), Sent(client_id="cc")]
    for correlation_id in range(2 * CHANGES_MAX):
        client.send_frame(kinds[correlation_id % 2].frame(correlation_id))
    handled.clear()
    for correlation_id in range(10):
        client.send_frame(kinds[correlation_id % 2].frame(correlation_id))
    assert len(handled) == 5


@on_loop
async def test_no_more_than_so_many_partitions_are_remembered() -> None:
    node = await start_node()
    client, handled = counting_client(node)
    for index in range(REMEMBERED_MAX + 1):
        node.assign(TOPIC, index)
        await asyncio.sleep(0)
        client.send_frame(Sent(partition=index).frame(index))
    client.send_frame(Sent(partition=REMEMBERED_MAX).frame(1))
    assert len(handled) == REMEMBERED_MAX + 1
    client.send_frame(Sent(partition=0).frame(2))
    assert len(handled) == REMEMBERED_MAX + 2
