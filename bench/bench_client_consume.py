"""Reading columns beside other clients' ways of consuming: the same node, the same topic, in turns.

Every client reads the topic from its start and looks at each value once, by the quickest means it has; of
several rounds the best counts. The clients that make an object of every record read a part of the topic only,
or it would take too long. The last rows are about memory: what a reader holds that pauses.
"""

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import uvloop
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as RdPartition
from kafka import KafkaConsumer
from kafka import TopicPartition as PyPartition

from bench.harness import Row
from bench.node_brokers import DIRECTORY_VARIABLE, SETTINGS, HeadraceBroker, resident_bytes
from bench.node_starts import first_start
from bench.node_wire import WireClient, create_topic
from headrace.client.cluster import Cluster
from headrace.client.column_reader import ColumnReader
from headrace.client.config import ClientConfig
from headrace.types import TopicPartition

ROUNDS: Final = 4
LARGE: Final = 1_000
MESSAGES_PER_CALL: Final = 10_000
POLL_MS: Final = 1_000
PREFETCH_BYTES: Final = 16 * 1024 * 1024
PREFETCH_BYTES_SMALL: Final = 1024 * 1024
QUEUED_MAX: Final = 1_000_000

Read = Callable[[str, str, int], int]


class Other(NamedTuple):
    """Another client, what it reads with, how many messages, and how many times as fast we want to be."""

    name: str
    read: Read
    messages: int
    target: float | None = None


class Wrong(Exception):
    """Not every byte was read."""


def run() -> list[Row]:
    """All rows."""
    with _node() as node:
        return [
            *_beside(
                node,
                100,
                1_500_000,
                Other("confluent-kafka", _confluent, 300_000, 5.0),
                Other("aiokafka", _aiokafka, 100_000),
                Other("kafka-python", _kafka_python, 60_000),
            ),
            *_beside(node, LARGE, 200_000, Other("confluent-kafka", _confluent, 100_000)),
            *_memory(node, "of-1000", LARGE, 200_000),
        ]


@contextmanager
def _node() -> Iterator[HeadraceBroker]:
    with TemporaryDirectory(prefix="headrace-bench-", dir=os.environ.get(DIRECTORY_VARIABLE)) as directory:
        node = HeadraceBroker(Path(directory), SETTINGS)
        try:
            first_start(node)
            yield node
        finally:
            node.kill()


def _beside(node: HeadraceBroker, size: int, count: int, *others: Other) -> list[Row]:
    """Ours and the others in turns, on one topic."""
    topic = f"of-{size}"
    _fill(node, topic, size, count)
    measures = [partial(_rate, node, _columns, topic, size, count)]
    measures += [partial(_rate, node, other.read, topic, size, other.messages) for other in others]
    best = [0.0] * len(measures)
    for _ in range(ROUNDS):
        for place, measure in enumerate(measures):
            best[place] = max(best[place], measure())
    return [
        Row(
            f"consume {size} B, against {other.name}",
            f"{best[0] / 1e3:.0f} k/s",
            f"{rate / 1e3:.0f} k/s",
            best[0] / rate,
            other.target,
        )
        for other, rate in zip(others, best[1:], strict=True)
    ]


def _fill(node: HeadraceBroker, topic: str, size: int, count: int) -> None:
    with WireClient(node.host, node.port) as client:
        create_topic(client, topic)
    producer = Producer(
        {"bootstrap.servers": node.address, "linger.ms": 5, "queue.buffering.max.messages": QUEUED_MAX}
    )
    value = bytes(size)
    for _ in range(count):
        while True:
            try:
                producer.produce(topic, value)
                break
            except BufferError:
                producer.poll(0.01)
    producer.flush()


def _rate(node: HeadraceBroker, read: Read, topic: str, size: int, count: int) -> float:
    started = time.perf_counter()
    found = read(node.address, topic, count)
    elapsed = time.perf_counter() - started
    if found < count * size:
        raise Wrong(f"{read.__name__} read {found} bytes of {count} messages of {size}")
    return count / elapsed


def _columns(address: str, topic: str, count: int) -> int:
    """Ours. The bytes of all values are counted without looking at them one by one."""

    async def read() -> int:
        partition = TopicPartition(topic, 0)
        total = 0
        async with (
            Cluster(ClientConfig(bootstrap_servers=(address,))) as cluster,
            ColumnReader(cluster, {partition: 0}, until={partition: count}) as reader,
        ):
            async for columns in reader:
                values = columns.batch.column("value")
                total += values.buffers()[2].size
        return total

    return uvloop.run(read())


def _confluent(address: str, topic: str, count: int) -> int:
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "bench",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 10,
        }
    )
    consumer.assign([RdPartition(topic, 0, 0)])
    read = total = 0
    while read < count:
        messages = consumer.consume(MESSAGES_PER_CALL, 1.0)
        read += len(messages)
        total += sum([len(message.value()) for message in messages])
    consumer.close()
    return total


def _aiokafka(address: str, topic: str, count: int) -> int:
    async def read() -> int:
        consumer = AIOKafkaConsumer(bootstrap_servers=address, enable_auto_commit=False)
        await consumer.start()
        try:
            partition = AioPartition(topic, 0)
            consumer.assign([partition])
            consumer.seek(partition, 0)
            found = total = 0
            while found < count:
                for messages in (await consumer.getmany(timeout_ms=POLL_MS)).values():
                    found += len(messages)
                    total += sum([len(message.value) for message in messages])
            return total
        finally:
            await consumer.stop()

    return asyncio.run(read())


def _kafka_python(address: str, topic: str, count: int) -> int:
    consumer = KafkaConsumer(bootstrap_servers=address, enable_auto_commit=False)
    partition = PyPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek(partition, 0)
    found = total = 0
    while found < count:
        for messages in consumer.poll(POLL_MS, max_records=MESSAGES_PER_CALL).values():
            found += len(messages)
            total += sum([len(message.value) for message in messages])
    consumer.close()
    return total


def _memory(node: HeadraceBroker, topic: str, size: int, count: int) -> list[Row]:
    """What a reader holds that takes its time, and by how much its process grows with the bound."""
    with get_context("spawn").Pool(1, maxtasksperchild=1) as processes:
        (_, least), (held, grown) = [
            processes.apply(_read_slowly, (node.address, topic, count, bound))
            for bound in (PREFETCH_BYTES_SMALL, PREFETCH_BYTES)
        ]
    bound = _mb(PREFETCH_BYTES)
    name = f"a slow reader of {count * size / 1e6:.0f} MB"
    more = max(grown - least, 0)
    return [
        Row(f"{name}: held at most, prefetch bound", _mb(held), bound, held / PREFETCH_BYTES, 1.1, False),
        Row(f"{name}: more than with 1 MB, bound", _mb(more), bound, more / PREFETCH_BYTES, 2.0, False),
    ]


def _read_slowly(address: str, topic: str, count: int, bound: int) -> tuple[int, int]:
    """The most that was held, and the most by which the process grew."""

    async def read() -> tuple[int, int]:
        partition = TopicPartition(topic, 0)
        most = largest = 0
        async with (
            Cluster(ClientConfig(bootstrap_servers=(address,))) as cluster,
            ColumnReader(cluster, {partition: 0}, until={partition: count}, prefetch_bytes=bound) as reader,
        ):
            before = resident_bytes(os.getpid())
            async for _ in reader:
                await asyncio.sleep(0.02)
                most = max(most, reader.buffered_bytes)
                largest = max(largest, resident_bytes(os.getpid()) - before)
        return most, largest

    return uvloop.run(read())


def _mb(count: float) -> str:
    return f"{count / 1e6:.0f} MB"
