"""Our client against Apache Kafka: it reads what Java and librdkafka read, and gets over restarts."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as RdPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from compat.kafka_peer import CLUSTER_ID, ONE_BROKER, KafkaPeer, running_kafka
from compat.support_client import (
    PATIENCE_SECONDS,
    by_columns,
    by_java,
    by_librdkafka,
    config,
    create_topic,
    read_topic,
    run,
)
from headrace.client.cluster import Cluster
from headrace.client.column_reader import ColumnReader, Columns
from headrace.client.errors import PositionOutOfRange, TopicRecreated, UnknownTopics
from headrace.client.offsets import EARLIEST, LATEST, MAX_TIMESTAMP, list_offsets
from headrace.protocol.api_table import ApiKey
from headrace.types import TopicPartition

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


@pytest.fixture(scope="module")
def kafka(kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaPeer]:
    # Few slots for fetch sessions, so that they are taken away and have to be begun anew.
    settings = ONE_BROKER | {"max.incremental.fetch.session.cache.slots": "2"}
    with running_kafka(tmp_path_factory.mktemp("kafka"), settings) as peer:
        yield peer


def produce(address: str, name: str, count: int, **settings: Any) -> None:
    """Records of all shapes: with and without keys, values and headers, long and short."""
    producer = Producer({"bootstrap.servers": address, "linger.ms": 2, **settings})
    for number in range(count):
        producer.produce(
            name,
            key=None if number % 3 == 0 else b"key-%d" % (number % 17),
            value=None if number % 11 == 10 else b"%d-" % number * (number % 40),
            headers=[("h", b"%d" % number), ("empty", None)] if number % 5 == 0 else None,
            timestamp=1_700_000_000_000 + number * 7,
        )
    assert producer.flush(PATIENCE_SECONDS) == 0


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_is_read_as_java_and_librdkafka_read_it(kafka: KafkaPeer, codec: str) -> None:
    name = f"codec-{codec}"
    create_topic(kafka.address, name, partitions=3)
    produce(kafka.address, name, 3000, **{"compression.type": codec, "batch.num.messages": 50})
    ours = by_columns(kafka.address, name)
    assert len(ours) == 3000
    assert ours == by_librdkafka(kafka.address, name, range(3))
    assert ours == by_java(kafka.address, name)
    assert ours == by_columns(kafka.address, name, views=True, plain=True)
    small = {"max_partition_fetch_bytes": 500, "fetch_max_bytes": 2000}
    assert ours == by_columns(kafka.address, name, fields=small, prefetch_bytes=3000)


def test_times_that_the_broker_sets_are_read_alike(kafka: KafkaPeer) -> None:
    create_topic(kafka.address, "append-time", message_timestamp_type="LogAppendTime")
    produce(kafka.address, "append-time", 300)
    ours = by_columns(kafka.address, "append-time")
    assert ours == by_librdkafka(kafka.address, "append-time") == by_java(kafka.address, "append-time")
    assert {line.split()[3] for line in ours} == {"1"}


def test_aborted_transactions_are_read_as_the_isolation_says(kafka: KafkaPeer) -> None:
    create_topic(kafka.address, "transactions", partitions=2)
    producers = [
        Producer({"bootstrap.servers": kafka.address, "transactional.id": f"t{number}", "linger.ms": 0})
        for number in range(2)
    ]
    for producer in producers:
        producer.init_transactions(PATIENCE_SECONDS)
    for round_ in range(12):
        for producer in producers:
            producer.begin_transaction()
        for number in range(20):
            for index, producer in enumerate(producers):
                producer.produce("transactions", b"%d %d %d" % (round_, number, index), partition=number % 2)
                producer.flush(PATIENCE_SECONDS)
        for index, producer in enumerate(producers):
            if (round_ + index) % 3 == 0:
                producer.abort_transaction(PATIENCE_SECONDS)
            else:
                producer.commit_transaction(PATIENCE_SECONDS)
    for isolation in ("read_committed", "read_uncommitted"):
        ours = by_columns(kafka.address, "transactions", isolation=isolation)
        assert ours == by_librdkafka(kafka.address, "transactions", range(2), isolation)
        assert ours == by_java(kafka.address, "transactions", isolation)
        tiny = {"max_partition_fetch_bytes": 1}
        assert ours == by_columns(kafka.address, "transactions", fields=tiny, isolation=isolation)
        assert len(ours) == {"read_committed": 320, "read_uncommitted": 480}[isolation]


def test_an_open_transaction_is_waited_for(kafka: KafkaPeer) -> None:
    create_topic(kafka.address, "open")
    producer = Producer({"bootstrap.servers": kafka.address, "transactional.id": "open"})
    producer.init_transactions(PATIENCE_SECONDS)
    producer.begin_transaction()
    producer.produce("open", b"first")
    producer.flush(PATIENCE_SECONDS)

    async def test() -> None:
        partition = TopicPartition("open", 0)
        async with Cluster(config(kafka.address, isolation_level="read_committed")) as cluster:
            ends = await list_offsets(cluster, {partition: LATEST})
            assert ends[partition].offset == 0
            async with ColumnReader(cluster, {partition: 0}, until={partition: 2}) as reader:
                waiting = asyncio.create_task(reader.next())
                done, _ = await asyncio.wait([waiting], timeout=1)
                assert not done
                await asyncio.to_thread(producer.commit_transaction, PATIENCE_SECONDS)
                columns = await waiting
                assert columns is not None
                assert columns.batch.column("value").to_pylist() == [b"first"]
                assert columns.end == 2
                assert await reader.next() is None

    run(test())


def test_offsets_are_those_that_librdkafka_is_told(kafka: KafkaPeer) -> None:
    create_topic(kafka.address, "times")
    produce(kafka.address, "times", 1000, **{"batch.num.messages": 20})
    admin = AdminClient({"bootstrap.servers": kafka.address})
    partition, theirs = TopicPartition("times", 0), RdPartition("times", 0)
    times = [1_700_000_000_000 + number for number in (-5, 0, 1, 700, 3500, 6993)]

    async def ours(position: int) -> tuple[int, int, int]:
        async with Cluster(config(kafka.address)) as cluster:
            return (await list_offsets(cluster, {partition: position}))[partition]

    for time in times:
        told = admin.list_offsets({theirs: OffsetSpec.for_timestamp(time)})[theirs].result()
        assert run(ours(time))[:2] == (told.offset, told.timestamp)
    assert run(ours(1_700_000_006_994))[0] == -1
    for position, spec in [
        (EARLIEST, OffsetSpec.earliest()),
        (LATEST, OffsetSpec.latest()),
        (MAX_TIMESTAMP, OffsetSpec.max_timestamp()),
    ]:
        told = admin.list_offsets({theirs: spec})[theirs].result()
        assert run(ours(position))[0] == told.offset


def test_sessions_that_the_broker_throws_out_are_begun_anew(kafka: KafkaPeer) -> None:
    """More readers than the broker keeps sessions for, all at once."""
    create_topic(kafka.address, "crowded", partitions=4)
    produce(kafka.address, "crowded", 4000, **{"batch.num.messages": 20})

    async def test() -> list[int]:
        async with Cluster(config(kafka.address, max_partition_fetch_bytes=5000)) as cluster:
            found = await asyncio.gather(*(read_topic(cluster, "crowded") for _ in range(8)))
            return [sum(map(len, each)) for each in found]

    assert run(test()) == [4000] * 8


def test_positions_that_are_gone_are_errors(kafka: KafkaPeer) -> None:
    create_topic(kafka.address, "shortened")
    produce(kafka.address, "shortened", 100)
    admin = AdminClient({"bootstrap.servers": kafka.address})
    (deleted,) = admin.delete_records([RdPartition("shortened", 0, 40)]).values()
    deleted.result(PATIENCE_SECONDS)

    async def read(position: int) -> list[Columns]:
        partition = TopicPartition("shortened", 0)
        async with (
            Cluster(config(kafka.address)) as cluster,
            ColumnReader(cluster, {partition: position}, until={partition: 100}) as reader,
        ):
            return [columns async for columns in reader]

    for position in (39, 101):
        with pytest.raises(PositionOutOfRange) as gone:
            run(read(position) if position < 100 else _beyond(kafka, position))
        assert (gone.value.earliest, gone.value.latest) == (40, 100)
    assert sum(map(len, run(read(40)))) == 60


async def _beyond(kafka: KafkaPeer, position: int) -> list[Columns]:
    partition = TopicPartition("shortened", 0)
    async with (
        Cluster(config(kafka.address)) as cluster,
        ColumnReader(cluster, {partition: position}) as reader,
    ):
        return [columns async for columns in reader]


def test_a_topic_created_again_is_noticed(kafka: KafkaPeer) -> None:
    create_topic(kafka.address, "phoenix")
    produce(kafka.address, "phoenix", 10)
    admin = AdminClient({"bootstrap.servers": kafka.address})

    def recreate() -> None:
        admin.delete_topics(["phoenix"])["phoenix"].result(PATIENCE_SECONDS)
        for _ in range(100):
            try:
                create_topic(kafka.address, "phoenix")
            except Exception as error:
                if "already exists" not in str(error):
                    raise
            else:
                return

    async def test() -> None:
        partition = TopicPartition("phoenix", 0)
        async with Cluster(config(kafka.address)) as cluster:
            old = (await cluster.topics(["phoenix"]))["phoenix"].topic_id
            async with ColumnReader(cluster, {partition: 0}) as reader:
                assert len(await reader.next() or ()) == 10
                await asyncio.to_thread(recreate)
                with pytest.raises(TopicRecreated) as recreated:
                    await reader.next()
                assert recreated.value.expected == old
                assert recreated.value.found != old

    run(test())


def test_a_compacted_topic_is_read_to_its_end(kafka: KafkaPeer) -> None:
    create_topic(
        kafka.address,
        "compacted",
        cleanup_policy="compact",
        min_cleanable_dirty_ratio="0.01",
        max_compaction_lag_ms="1",
        segment_ms="100",
        delete_retention_ms="1",
    )
    for _ in range(3):
        produce_keyed(kafka.address, "compacted", 500)
    ours, theirs = [""], ["not yet"]
    # The cleaner works at its own pace; what counts is what both see once it has been there.
    while len(ours) > 1000 or ours != theirs:
        ours, theirs = by_columns(kafka.address, "compacted"), by_java(kafka.address, "compacted")
    assert 0 < len(ours) < 1000
    assert ours == by_librdkafka(kafka.address, "compacted")


def produce_keyed(address: str, name: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": address, "batch.num.messages": 10})
    for number in range(count):
        producer.produce(name, key=b"%d" % (number % 7), value=b"%d" % number)
    assert producer.flush(PATIENCE_SECONDS) == 0


def test_what_kafka_tells_of_itself_is_known(kafka: KafkaPeer) -> None:
    create_topic(kafka.address, "known", partitions=5)

    async def test() -> None:
        async with Cluster(config(kafka.address)) as cluster:
            assert cluster.cluster_id == CLUSTER_ID
            assert list(cluster.metadata.brokers) == [1]
            topic = (await cluster.topics(["known"]))["known"]
            assert sorted(topic.partitions) == list(range(5))
            assert topic.has_id
            assert {each.leader for each in topic.partitions.values()} == {1}
            assert (await cluster.leader("known", 4)).epoch == 0
            versions = await cluster.versions(1)
            assert versions.supports(ApiKey.FETCH, 18)
            assert versions.features["metadata.version"] > 0
            with pytest.raises(UnknownTopics, match=r"'knwon' \(did you mean 'known'\?\)"):
                await cluster.topics(["knwon"])

    run(test())


def test_a_reader_gets_over_restarts_of_the_broker(kafka_libs: Path, tmp_path: Path) -> None:
    """The leader's epoch grows with each restart, so the position is checked against its history."""

    async def test(peer: KafkaPeer) -> None:
        partition = TopicPartition("lasting", 0)
        async with Cluster(config(peer.address)) as cluster, ColumnReader(cluster, {partition: 0}) as reader:
            epochs = []
            for number in range(3):
                await asyncio.to_thread(produce, peer.address, "lasting", 100)
                found = 0
                while found < 100:
                    columns = await reader.next()
                    assert columns is not None
                    assert columns.start == number * 100 + found
                    found += len(columns)
                epochs.append((await cluster.leader(*partition)).epoch)
                await asyncio.to_thread(peer.stop if number else peer.kill)
                await asyncio.to_thread(peer.start)
            assert epochs == sorted(set(epochs))

    with running_kafka(tmp_path) as peer:
        create_topic(peer.address, "lasting")
        run(test(peer))
