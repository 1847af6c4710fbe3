"""Writing columns beside other clients' ways of producing: the same node, the same topic layout, in turns.

Every client has its messages at hand in the form that it takes, sends with acks=all, and counts what is
acknowledged in the end. Batches may grow to librdkafka's default of 1 MB for all of them. Of several rounds
the best counts.
"""

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import pyarrow as pa
import uvloop
from aiokafka import AIOKafkaProducer
from confluent_kafka import Producer
from kafka import KafkaProducer

from bench.harness import Row
from bench.node_brokers import DIRECTORY_VARIABLE, SETTINGS, HeadraceBroker
from bench.node_starts import first_start
from bench.node_wire import WireClient, create_topic, delete_topic, end_offset
from headrace.client.cluster import Cluster
from headrace.client.column_writer import ColumnWriter
from headrace.client.config import ClientConfig

ROUNDS: Final = 7
BATCH_BYTES: Final = 1_000_000
LINGER_MS: Final = 5
ROWS_PER_WRITE: Final = 50_000
# librdkafka holds at most this many messages by itself.
QUEUED_MAX: Final = 1_000_000

Load = Callable[[str, str, int, int], None]


class Produced(NamedTuple):
    """How large messages are, and how many are written at a time by us."""

    size: int
    messages: int


class Other(NamedTuple):
    """Another client, how many messages it is given, and how many times as fast we want to be."""

    name: str
    load: Load
    messages: int
    target: float | None = None


class Rate(NamedTuple):
    """Messages a second, and the processor time of the client for each, all of its threads together."""

    per_second: float
    processor_us: float


class Wrong(Exception):
    """Not every message arrived."""


def run() -> list[Row]:
    """All rows."""
    with _node() as node:
        return [
            *_beside(
                node,
                Produced(100, 600_000),
                Other("confluent-kafka", _confluent, 600_000, 1.5),
                Other("confluent-kafka's produce_batch", _batched, 600_000),
                Other("aiokafka", _aiokafka, 20_000),
                Other("kafka-python", _kafka_python, 15_000),
            ),
            *_beside(node, Produced(1_000, 100_000), Other("confluent-kafka", _confluent, 100_000)),
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


def _beside(node: HeadraceBroker, ours: Produced, *others: Other) -> list[Row]:
    """Ours and the others in turns."""
    measures = [partial(_rate, node, _columns, ours.messages, ours.size)]
    measures += [partial(_rate, node, other.load, other.messages, ours.size) for other in others]
    best = [Rate(0.0, inf)] * len(measures)
    for _ in range(ROUNDS):
        for place, measure in enumerate(measures):
            found = measure()
            best[place] = Rate(
                max(best[place].per_second, found.per_second),
                min(best[place].processor_us, found.processor_us),
            )
    return [
        row
        for other, rate in zip(others, best[1:], strict=True)
        for row in _rows_of(ours, best[0], other, rate)
    ]


def _rows_of(ours: Produced, found: Rate, other: Other, theirs: Rate) -> Iterator[Row]:
    name = f"produce {ours.size} B, against {other.name}"
    yield Row(
        name,
        f"{found.per_second / 1e3:.0f} k/s",
        f"{theirs.per_second / 1e3:.0f} k/s",
        found.per_second / theirs.per_second,
        other.target,
    )
    yield Row(
        f"{name}: processor time each",
        f"{found.processor_us:.2f} us",
        f"{theirs.processor_us:.2f} us",
        found.processor_us / theirs.processor_us,
        None if other.target is None else 1 / other.target,
        higher_is_better=False,
    )


def _rate(node: HeadraceBroker, load: Load, count: int, size: int) -> Rate:
    """How quickly messages go into a topic of their own."""
    with WireClient(node.host, node.port) as client:
        topic = f"{load.__name__.strip('_')}-{time.monotonic_ns()}"
        create_topic(client, topic)
        started, used = time.perf_counter(), time.process_time()
        load(node.address, topic, count, size)
        elapsed, used = time.perf_counter() - started, time.process_time() - used
        stored = end_offset(client, topic)
        delete_topic(client, topic)
    if stored != count:
        raise Wrong(f"{topic} has {stored} messages of {count}")
    return Rate(count / elapsed, used / count * 1e6)


def _columns(address: str, topic: str, count: int, size: int) -> None:
    rows = _rows(min(ROWS_PER_WRITE, count), size)

    async def write() -> None:
        config = ClientConfig(bootstrap_servers=(address,), batch_size=BATCH_BYTES, linger_ms=LINGER_MS)
        async with Cluster(config) as cluster, ColumnWriter(cluster, topic=topic) as writer:
            for _ in range(count // rows.num_rows):
                await writer.write(rows)

    uvloop.run(write())


@cache
def _rows(count: int, size: int) -> pa.RecordBatch:
    return pa.record_batch({"value": pa.array(_values(count, size), pa.binary())})


@cache
def _values(count: int, size: int) -> list[bytes]:
    """Messages, each of its own: nobody writes the same one over and over."""
    return [b"%0*d" % (size, number) for number in range(count)]


def _producer(address: str) -> Producer:
    return Producer(
        {
            "bootstrap.servers": address,
            "acks": "all",
            "batch.size": BATCH_BYTES,
            "linger.ms": LINGER_MS,
            "queue.buffering.max.messages": QUEUED_MAX,
        }
    )


def _confluent(address: str, topic: str, count: int, size: int) -> None:
    producer = _producer(address)
    for _ in range(count // ROWS_PER_WRITE):
        for number, value in enumerate(_values(ROWS_PER_WRITE, size)):
            producer.produce(topic, value)
            if number % 1_000 == 0:
                producer.poll(0)
    producer.flush()


def _batched(address: str, topic: str, count: int, size: int) -> None:
    producer = _producer(address)
    messages = _messages(ROWS_PER_WRITE, size)
    for _ in range(count // ROWS_PER_WRITE):
        producer.produce_batch(topic, messages)
        producer.poll(0)
    producer.flush()


@cache
def _messages(count: int, size: int) -> list[dict[str, bytes]]:
    return [{"value": value} for value in _values(count, size)]


def _aiokafka(address: str, topic: str, count: int, size: int) -> None:
    async def send() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=address, acks="all", max_batch_size=BATCH_BYTES, linger_ms=LINGER_MS
        )
        await producer.start()
        sent = [await producer.send(topic, value) for value in _values(count, size)]
        await asyncio.gather(*sent)
        await producer.stop()

    uvloop.run(send())


def _kafka_python(address: str, topic: str, count: int, size: int) -> None:
    producer = KafkaProducer(
        bootstrap_servers=address, acks="all", batch_size=BATCH_BYTES, linger_ms=LINGER_MS
    )
    for value in _values(count, size):
        producer.send(topic, value)
    producer.flush()
    producer.close()
