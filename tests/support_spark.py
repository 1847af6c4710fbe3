"""What tests of Spark share: a local session, topics to read from, and rows as plain tuples.

Nothing is produced or consumed through what is tested: the other side is librdkafka.
"""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

PATIENCE_SECONDS = 120
# Brokers are stopped under its hands, which it would tell in every test that comes later.
_SILENT = {"log_level": 0}


@dataclass(frozen=True, slots=True)
class Record:
    """A record to produce, or one that was consumed."""

    value: bytes | None
    key: bytes | None = None
    partition: int = 0
    timestamp: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def start_spark(directory: Path, extra: dict[str, str] | None = None) -> SparkSession:
    """A session on two cores of this machine, with nothing left lying around outside of `directory`."""
    # The engine is the one that belongs to the module, whatever the machine has installed besides.
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={directory} -XX:+UseSerialGC",
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.local.dir": str(directory / "local"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.streaming.pollingDelay": "10ms",
        **(extra or {}),
    }
    builder = SparkSession.builder.master("local[2]").appName("headrace tests")
    for name, text in settings.items():
        builder = builder.config(name, text)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


class Topics:
    """Topics of one cluster: made, filled and emptied by librdkafka."""

    def __init__(self, bootstrap: str) -> None:
        from confluent_kafka.admin import AdminClient

        self.bootstrap = bootstrap
        self._admin = AdminClient({"bootstrap.servers": bootstrap, **_SILENT})

    def create(self, name: str, partitions: int = 1, **configs: str) -> str:
        """Make a topic; keywords are its configuration, with underscores for dots."""
        from confluent_kafka.admin import NewTopic

        settings = {key.replace("_", "."): text for key, text in configs.items()}
        self._done(self._admin.create_topics([NewTopic(name, partitions, 1, config=settings)]))
        return name

    def delete(self, name: str) -> None:
        self._done(self._admin.delete_topics([name]))

    def grow(self, name: str, partitions: int) -> None:
        """Add partitions until there are so many."""
        from confluent_kafka.admin import NewPartitions

        self._done(self._admin.create_partitions([NewPartitions(name, partitions)]))

    def delete_records(self, name: str, before: int, partition: int = 0) -> None:
        """Delete the records of a partition before an offset."""
        from confluent_kafka import TopicPartition

        self._done(self._admin.delete_records([TopicPartition(name, partition, before)]))

    def _done(self, futures: dict[Any, Any]) -> None:
        for future in futures.values():
            future.result(PATIENCE_SECONDS)

    def produce(self, name: str, records: Iterable[Record], **config: Any) -> None:
        """Produce records and wait until they are acknowledged."""
        from confluent_kafka import Producer

        settings = {key.replace("_", "."): value for key, value in config.items()}
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 5, **_SILENT, **settings})
        failures: list[Any] = []
        for record in records:
            timestamp = {} if record.timestamp is None else {"timestamp": record.timestamp}
            producer.produce(
                name,
                record.value,
                record.key,
                record.partition,
                on_delivery=lambda error, _: failures.append(error) if error else None,
                headers=list(record.headers) or None,
                **timestamp,
            )
        assert producer.flush(PATIENCE_SECONDS) == 0
        assert not failures, failures

    def produce_by_key(self, name: str, keys: Iterable[bytes]) -> None:
        """Produce a record for each key, to the partition that Java's clients would choose."""
        from confluent_kafka import Producer

        config = {"bootstrap.servers": self.bootstrap, "partitioner": "murmur2_random", **_SILENT}
        producer = Producer(config)
        for key in keys:
            producer.produce(name, b"v", key)
        assert producer.flush(PATIENCE_SECONDS) == 0

    def transaction(self, name: str, transactional_id: str, values: Iterable[bytes], *, commit: bool) -> None:
        """Produce values in a transaction, and commit or abort it."""
        from confluent_kafka import Producer

        config = {"bootstrap.servers": self.bootstrap, "transactional.id": transactional_id, **_SILENT}
        producer = Producer(config)
        producer.init_transactions(PATIENCE_SECONDS)
        producer.begin_transaction()
        for value in values:
            producer.produce(name, value)
        producer.flush(PATIENCE_SECONDS)
        end = producer.commit_transaction if commit else producer.abort_transaction
        end(PATIENCE_SECONDS)

    def committed(self, group: str, name: str, partitions: int) -> list[int]:
        """The offsets that a group has committed for a topic, by partition; -1001 where there is none."""
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": group, **_SILENT})
        try:
            wanted = [TopicPartition(name, number) for number in range(partitions)]
            return [found.offset for found in consumer.committed(wanted, PATIENCE_SECONDS)]
        finally:
            consumer.close()

    def values(self, name: str, count: int, *, start: int = 0, partition: int = 0) -> None:
        """Produce `count` records whose values are consecutive numbers."""
        self.produce(
            name, [Record(b"%d" % number, partition=partition) for number in range(start, start + count)]
        )

    def consume(self, name: str, partition: int = 0) -> list[Record]:
        """All that a partition holds now."""
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer(
            {"bootstrap.servers": self.bootstrap, "group.id": "tests", "enable.auto.commit": False, **_SILENT}
        )
        try:
            here = TopicPartition(name, partition)
            start, end = consumer.get_watermark_offsets(here, timeout=PATIENCE_SECONDS)
            consumer.assign([TopicPartition(name, partition, start)])
            found: list[Record] = []
            while len(found) < end - start:
                message = consumer.poll(PATIENCE_SECONDS)
                assert message is not None
                assert not message.error(), message.error()
                found.append(_record(message))
            return found
        finally:
            consumer.close()


def _record(message: Any) -> Record:
    return Record(
        message.value(),
        message.key(),
        message.partition(),
        message.timestamp()[1],
        tuple(message.headers() or ()),
    )


def read(spark: SparkSession, bootstrap: str, **options: str) -> DataFrame:
    """A batch query; keywords are options, with two underscores for a dot."""
    return spark.read.format("headrace").options(**_options(bootstrap, options)).load()


def read_stream(spark: SparkSession, bootstrap: str, **options: str) -> DataFrame:
    """A stream; keywords are options, with two underscores for a dot."""
    return spark.readStream.format("headrace").options(**_options(bootstrap, options)).load()


def _options(bootstrap: str, options: dict[str, str]) -> dict[str, str]:
    return {"kafka.bootstrap.servers": bootstrap} | {
        name.replace("__", "."): text for name, text in options.items()
    }


def numbers(frame: DataFrame) -> list[int]:
    """The values of rows as numbers, sorted."""
    return sorted(int(row.value) for row in frame.select("value").collect())


def offsets_json(**topics: dict[int, int]) -> str:
    """Offsets as options take them."""
    return json.dumps(
        {name: {str(number): at for number, at in found.items()} for name, found in topics.items()}
    )


def run_available(frame: DataFrame, directory: Path, name: str) -> StreamingQuery:
    """Read a stream up to what is there now into a Parquet directory, and return the ended query."""
    query = (
        frame.writeStream.format("parquet")
        .option("path", str(directory / name))
        .option("checkpointLocation", str(directory / f"{name}-checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(PATIENCE_SECONDS)
    return query


def batch_sizes(query: StreamingQuery) -> list[int]:
    """How many rows each batch had."""
    return [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]


def collected(directory: Path, name: str) -> list[int]:
    """The values that `run_available` wrote, as numbers, sorted."""
    return numbers(SparkSession.active().read.parquet(str(directory / name)))


def rows(frame: DataFrame, *columns: str) -> Sequence[tuple[Any, ...]]:
    """Rows as tuples, sorted by partition and offset."""
    ordered = frame.orderBy("topic", "partition", "offset")
    return [tuple(row) for row in (ordered.select(*columns) if columns else ordered).collect()]
