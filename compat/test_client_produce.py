"""What the column writer sends is read by Java's consumer and librdkafka, on Apache Kafka and on Headrace."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat.kafka_libs import RunJava
from compat.kafka_peer import KafkaPeer, running_kafka
from headrace.client.cluster import Cluster
from headrace.client.column_writer import ColumnWriter
from headrace.client.config import ClientConfig
from headrace.client.delivery import DeliveriesFailed
from headrace.errors import ErrorCode
from headrace.records.arrow_headers import HEADERS
from tests.support_node import RunningNode

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PARTITIONS = 3
ROWS = 400
PATIENCE_S = 60.0

#: Partition, offset, timestamp, key, value, headers.
Record: TypeAlias = tuple[int, int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]


@dataclass
class Broker:
    """A broker that clients can reach, and that can be killed and started again."""

    address: str
    restart: Callable[[], None]

    def create(self, partitions: int = 1, **config: str) -> str:
        """A new topic."""
        name = f"t-{uuid4()}"
        settings = {key.replace("_", "."): value for key, value in config.items()}
        admin = AdminClient({"bootstrap.servers": self.address})
        for done in admin.create_topics([NewTopic(name, partitions, 1, config=settings)]).values():
            done.result(PATIENCE_S)
        return name


@pytest.fixture(scope="module", params=["headrace", "kafka"])
def broker(
    request: pytest.FixtureRequest, kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    directory = tmp_path_factory.mktemp(request.param)
    if request.param == "headrace":
        node = RunningNode(directory)
        node.start()
        try:
            yield Broker(node.bootstrap, lambda: _restart_node(node))
        finally:
            node.kill()
    else:
        with running_kafka(directory) as kafka:
            yield Broker(kafka.address, lambda: _restart_kafka(kafka))


def _restart_node(node: RunningNode) -> None:
    node.kill()
    node.start()


def _restart_kafka(kafka: KafkaPeer) -> None:
    kafka.kill()
    kafka.start()


def write(broker: Broker, use: Callable[[Cluster], Coroutine[Any, Any, None]], **settings: Any) -> None:
    """Do something with a cluster of these settings."""

    async def main() -> None:
        async with Cluster(ClientConfig(bootstrap_servers=(broker.address,), **settings)) as cluster:
            await use(cluster)

    asyncio.run(main())


def sample() -> pa.Table:
    """Rows with and without keys, values and headers."""
    numbers = range(ROWS)
    return pa.table(
        {
            "key": pa.array(
                [None if n % 7 == 0 else b"" if n % 7 == 1 else b"k%d" % (n % 50) for n in numbers]
            ),
            "value": pa.array([None if n % 11 == 0 else b"value-%05d" % n * (n % 9) for n in numbers]),
            "headers": pa.array(
                [[("n", b"%d" % n), ("n", None), ("ü", b"")] if n % 3 == 0 else None for n in numbers],
                HEADERS,
            ),
            "timestamp": pa.array([1_700_000_000_000 + n * 37 % 1_000 for n in numbers], pa.int64()),
            "partition": pa.array([n % PARTITIONS for n in numbers], pa.int32()),
        }
    )


def expected(table: pa.Table) -> list[Record]:
    found: list[Record] = []
    ends = [0] * PARTITIONS
    for row in table.to_pylist():
        headers = tuple((each["key"], each["value"]) for each in row["headers"] or ())
        place = row["partition"]
        found.append((place, ends[place], row["timestamp"], row["key"], row["value"], headers))
        ends[place] += 1
    return sorted(found, key=lambda record: record[:2])


def read_by_java(run_java: RunJava, broker: Broker, topics: list[str]) -> dict[str, list[Record]]:
    done = run_java("ClientTopics.java", "read", broker.address, *topics)
    assert done.returncode == 0, done.stderr
    found: dict[str, list[Record]] = {topic: [] for topic in topics}
    for line in done.stdout.splitlines():
        topic, partition, offset, timestamp, key, value, headers = line.split("\t")
        parsed = tuple(
            (name, _bytes(text)) for name, text in (each.split("=") for each in headers.split(",") if each)
        )
        record = (int(partition), int(offset), int(timestamp), _bytes(key), _bytes(value), parsed)
        found[topic].append(record)
    return {topic: sorted(records, key=lambda record: record[:2]) for topic, records in found.items()}


def _bytes(text: str) -> bytes | None:
    return None if text == "-" else bytes.fromhex(text)


def read_by_librdkafka(broker: Broker, topic: str, partitions: int, count: int) -> list[Record]:
    consumer = Consumer(
        {"bootstrap.servers": broker.address, "group.id": "unused", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, place, 0) for place in range(partitions)])
    found: list[Record] = []
    while len(found) < count:
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        assert not message.error(), message.error()
        headers = tuple(message.headers() or ())
        found.append(
            (
                message.partition(),
                message.offset(),
                message.timestamp()[1],
                message.key(),
                message.value(),
                headers,
            )
        )
    consumer.close()
    return sorted(found, key=lambda record: record[:2])


def test_java_and_librdkafka_read_what_was_written_with_every_codec(
    broker: Broker, run_java: RunJava
) -> None:
    topics = {codec: broker.create(PARTITIONS) for codec in CODECS}
    table = sample()

    async def use(cluster: Cluster) -> None:
        for codec, topic in topics.items():
            config = ClientConfig(
                bootstrap_servers=(broker.address,), compression_type=codec, batch_size=3_000
            )
            async with ColumnWriter(cluster, topic=topic, config=config) as writer:
                await writer.write(table)
            assert writer.report.acknowledged == ROWS

    write(broker, use)
    by_java = read_by_java(run_java, broker, list(topics.values()))
    for codec, topic in topics.items():
        assert by_java[topic] == expected(table), codec
        assert read_by_librdkafka(broker, topic, PARTITIONS, ROWS) == expected(table), codec


def test_keys_go_to_the_partitions_that_java_and_librdkafka_choose(broker: Broker, run_java: RunJava) -> None:
    count = 7
    keys = [
        b"",
        b"a",
        b"ab",
        b"abc",
        b"abcd",
        *(b"key-%d" % n * (n % 6 + 1) for n in range(300)),
        bytes(range(256)),
    ]
    ours, java, librdkafka = broker.create(count), broker.create(count), broker.create(count)

    async def use(cluster: Cluster) -> None:
        async with ColumnWriter(cluster, topic=ours) as writer:
            await writer.write(pa.table({"key": pa.array(keys, pa.binary())}))

    write(broker, use)
    done = run_java("ClientTopics.java", "produce", broker.address, java, stdin=_lines(keys))
    assert done.returncode == 0, done.stderr
    producer = Producer({"bootstrap.servers": broker.address, "partitioner": "murmur2_random"})
    for key in keys:
        producer.produce(librdkafka, b"", key)
    producer.flush(PATIENCE_S)
    found = [
        {record[3]: record[0] for record in read_by_librdkafka(broker, topic, count, len(keys))}
        for topic in (ours, java, librdkafka)
    ]
    assert found[0] == found[1]
    assert found[0] == found[2]


def _lines(keys: list[bytes]) -> str:
    return "".join((key.hex() or '""') + "\n" for key in keys)


def test_a_broker_that_is_killed_and_comes_back_has_every_row_once_and_in_order(broker: Broker) -> None:
    topic = broker.create(PARTITIONS)
    total = 0

    async def use(cluster: Cluster) -> None:
        nonlocal total
        async with ColumnWriter(cluster, topic=topic) as writer:
            restart: asyncio.Task[None] | None = None
            while restart is None or not restart.done():
                numbers = range(total, total + 500)
                await writer.write(
                    pa.table(
                        {
                            "value": pa.array([b"%09d" % n for n in numbers]),
                            "partition": pa.array([n % PARTITIONS for n in numbers], pa.int32()),
                        }
                    )
                )
                total += 500
                await asyncio.sleep(0.01)
                if total == 5_000:
                    restart = asyncio.create_task(asyncio.to_thread(broker.restart))
            await writer.flush()
            assert writer.report.acknowledged == total

    write(broker, use)
    found = read_by_librdkafka(broker, topic, PARTITIONS, total)
    for partition in range(PARTITIONS):
        values = [record[4] for record in found if record[0] == partition]
        assert values == [b"%09d" % n for n in range(total) if n % PARTITIONS == partition]


def test_batches_above_the_topics_limit_are_split_and_a_record_above_it_fails(broker: Broker) -> None:
    topic = broker.create(max_message_bytes="2000")

    async def use(cluster: Cluster) -> None:
        writer = ColumnWriter(cluster, topic=topic)
        await writer.write(pa.table({"value": [f"{n}-" + "x" * 190 for n in range(100)]}))
        await writer.flush()
        await writer.write(pa.table({"value": ["small", "y" * 3_000, "small"]}))
        with pytest.raises(DeliveriesFailed, match=r"the topic takes 2000 at most") as caught:
            await writer.close()
        assert (caught.value.acknowledged, caught.value.failed) == (102, 1)
        assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE

    write(broker, use)
    values = [record[4] for record in read_by_librdkafka(broker, topic, 1, 102)]
    assert values == [f"{n}-".encode() + b"x" * 190 for n in range(100)] + [b"small"] * 2


def test_a_record_without_a_key_in_a_compacted_topic_is_named(broker: Broker) -> None:
    topic = broker.create(cleanup_policy="compact")

    async def use(cluster: Cluster) -> None:
        writer = ColumnWriter(cluster, topic=topic)
        await writer.write(pa.table({"key": ["a", None, "b"], "value": ["1", "2", "3"]}))
        with pytest.raises(DeliveriesFailed, match="record 1 of its batch") as caught:
            await writer.flush()
        assert caught.value.code == ErrorCode.INVALID_RECORD
        await writer.write(pa.table({"key": ["c"], "value": ["4"]}))
        await writer.close()

    write(broker, use)
    assert [record[3] for record in read_by_librdkafka(broker, topic, 1, 1)] == [b"c"]


def test_without_acknowledgements_rows_arrive_all_the_same(broker: Broker) -> None:
    topic = broker.create()

    async def use(cluster: Cluster) -> None:
        async with ColumnWriter(cluster, topic=topic) as writer:
            for number in range(20):
                await writer.write(pa.table({"value": [f"{number}"] * 50}))

    write(broker, use, acks=0, enable_idempotence=False)
    assert len(read_by_librdkafka(broker, topic, 1, 1_000)) == 1_000
