"""What clients make of a topic, each in the same words, so that they can be compared line by line."""

import asyncio
from base64 import b64encode
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any, TypeVar

import pyarrow as pa
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat.kafka_libs import run_java
from headrace.client.cluster import Cluster
from headrace.client.column_reader import ColumnReader, Columns
from headrace.client.config import ClientConfig
from headrace.client.offsets import EARLIEST, LATEST, list_offsets
from headrace.types import TopicPartition as Partition

T = TypeVar("T")
PATIENCE_SECONDS = 120
#: Partition, offset, timestamp, timestamp type, key, value, headers.
Line = str


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run to the end, or fail."""

    async def bounded() -> T:
        return await asyncio.wait_for(coroutine, PATIENCE_SECONDS)

    return asyncio.run(bounded())


def create_topic(address: str, name: str, partitions: int = 1, replication: int = 1, **settings: str) -> None:
    """A topic; underscores in settings stand for dots."""
    config = {key.replace("_", "."): value for key, value in settings.items()}
    admin = AdminClient({"bootstrap.servers": address})
    created = admin.create_topics([NewTopic(name, partitions, replication, config=config)])
    created[name].result(PATIENCE_SECONDS)


def config(address: str, **fields: Any) -> ClientConfig:
    return ClientConfig(bootstrap_servers=(address,), **fields)


async def read_topic(cluster: Cluster, name: str, **options: Any) -> list[Columns]:
    """All there is in a topic now, read by columns."""
    topic = (await cluster.topics([name]))[name]
    each = [Partition(name, partition) for partition in topic.partitions]
    isolation = options.get("isolation")
    ends = await list_offsets(cluster, dict.fromkeys(each, LATEST), isolation=isolation)
    until = {partition: found.offset for partition, found in ends.items()}
    async with ColumnReader(cluster, dict.fromkeys(each, EARLIEST), until=until, **options) as reader:
        return [columns async for columns in reader]


def by_columns(
    address: str, name: str, *, fields: Mapping[str, Any] | None = None, **options: Any
) -> list[Line]:
    """What our reader reads."""

    async def read() -> list[Columns]:
        async with Cluster(config(address, **(fields or {}))) as cluster:
            return await read_topic(cluster, name, **options)

    return sorted(line for columns in run(read()) for line in lines(columns.batch))


def lines(batch: pa.RecordBatch) -> list[Line]:
    batch = batch.set_column(
        batch.schema.get_field_index("timestamp"), "timestamp", batch.column("timestamp").cast(pa.int64())
    )
    return [
        _line(
            row["partition"],
            row["offset"],
            row["timestamp"],
            row["timestamp_type"],
            row["key"],
            row["value"],
            [(header["key"], header["value"]) for header in row["headers"] or ()],
        )
        for row in batch.to_pylist()
    ]


def by_librdkafka(
    address: str, name: str, partitions: Iterable[int] = (0,), isolation: str = ""
) -> list[Line]:
    """What confluent-kafka reads."""
    settings = {
        "bootstrap.servers": address,
        "group.id": "unused",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": isolation or "read_uncommitted",
    }
    consumer = Consumer(settings)
    found: list[Line] = []
    left = set(partitions)
    consumer.assign([TopicPartition(name, each, OFFSET_BEGINNING) for each in left])
    while left:
        message = consumer.poll(PATIENCE_SECONDS)
        assert message is not None
        if message.error() is not None:
            left.discard(message.partition())
            continue
        kind, timestamp = message.timestamp()
        found.append(
            _line(
                message.partition(),
                message.offset(),
                timestamp,
                kind - 1,
                message.key(),
                message.value(),
                message.headers() or [],
            )
        )
    consumer.close()
    return sorted(found)


def by_java(address: str, name: str, isolation: str = "read_uncommitted") -> list[Line]:
    """What Apache's consumer reads."""
    done = run_java("ReadTopic.java", address, name, isolation)
    assert done.returncode == 0, done.stderr
    return sorted(done.stdout.splitlines())


def _line(
    partition: int,
    offset: int,
    timestamp: int,
    timestamp_type: int,
    key: bytes | None,
    value: bytes | None,
    headers: Iterable[tuple[str, bytes | None]],
) -> Line:
    shown = ",".join(f"{name}={_text(content)}" for name, content in headers) or "-"
    return f"{partition} {offset} {timestamp} {timestamp_type} {_text(key)} {_text(value)} {shown}"


def _text(content: bytes | None) -> str:
    return "null" if content is None else "'" + b64encode(content).decode()
