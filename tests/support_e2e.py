"""Three clients from PyPI behind one small face, so that a test can say what holds for all of them.

Records are consumed by assignment, without groups."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

PATIENCE_SECONDS = 60.0
PATIENCE_MS = int(PATIENCE_SECONDS * 1000)


@dataclass(slots=True, frozen=True)
class Sent:
    """A record to produce."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()
    timestamp: int | None = None
    partition: int = 0


@dataclass(slots=True, frozen=True)
class Seen:
    """A record as it was consumed."""

    offset: int
    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int = field(default=-1, compare=False)


class Client(Protocol):
    """What every client can do."""

    def produce(
        self,
        topic: str,
        records: Sequence[Sent],
        *,
        codec: str = "none",
        acks: str | int = "all",
        idempotent: bool = False,
    ) -> list[int]:
        """Produce records in order; their offsets (-1 where the client is not told)."""

    def consume(self, topic: str, count: int, *, offset: int = 0, partition: int = 0) -> list[Seen]:
        """The next `count` records from an offset on."""


class ConfluentClient:
    """confluent-kafka, which is librdkafka."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def produce(
        self,
        topic: str,
        records: Sequence[Sent],
        *,
        codec: str = "none",
        acks: str | int = "all",
        idempotent: bool = False,
    ) -> list[int]:
        from confluent_kafka import Producer

        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "compression.type": codec,
                "acks": acks,
                "enable.idempotence": idempotent,
                "linger.ms": 5,
                "message.timeout.ms": PATIENCE_MS,
            }
        )
        offsets: list[int] = []
        failures: list[Any] = []

        def on_delivery(error: Any, message: Any) -> None:
            if error is not None:
                failures.append(error)
            else:
                offset = message.offset()
                offsets.append(-1 if offset is None else offset)

        for record in records:
            options: dict[str, Any] = {} if record.timestamp is None else {"timestamp": record.timestamp}
            producer.produce(
                topic,
                record.value,
                record.key,
                partition=record.partition,
                headers=list(record.headers),
                on_delivery=on_delivery,
                **options,
            )
            producer.poll(0)
        assert producer.flush(PATIENCE_SECONDS) == 0
        if failures:
            raise DeliveryFailed(str(failures[0]), failures[0].name())
        return offsets

    def consume(self, topic: str, count: int, *, offset: int = 0, partition: int = 0) -> list[Seen]:
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "not-used",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "check.crcs": True,
            }
        )
        seen: list[Seen] = []
        try:
            consumer.assign([TopicPartition(topic, partition, offset)])
            while len(seen) < count:
                messages = consumer.consume(count - len(seen), PATIENCE_SECONDS)
                assert messages, f"only {len(seen)} of {count} records came"
                for message in messages:
                    assert message.error() is None, message.error()
                    seen.append(
                        Seen(
                            message.offset(),
                            message.value(),
                            message.key(),
                            tuple(message.headers() or ()),
                            message.timestamp()[1],
                        )
                    )
        finally:
            consumer.close()
        return seen


class KafkaPythonClient:
    """kafka-python."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def produce(
        self,
        topic: str,
        records: Sequence[Sent],
        *,
        codec: str = "none",
        acks: str | int = "all",
        idempotent: bool = False,
    ) -> list[int]:
        from kafka import KafkaProducer

        producer = KafkaProducer(
            bootstrap_servers=self._bootstrap,
            compression_type=None if codec == "none" else codec,
            acks=acks,
            enable_idempotence=idempotent,
            linger_ms=5,
        )
        try:
            sending = [
                producer.send(
                    topic,
                    record.value,
                    record.key,
                    partition=record.partition,
                    headers=list(record.headers),
                    timestamp_ms=record.timestamp,
                )
                for record in records
            ]
            return [future.get(PATIENCE_SECONDS).offset for future in sending]
        finally:
            producer.close()

    def consume(self, topic: str, count: int, *, offset: int = 0, partition: int = 0) -> list[Seen]:
        from kafka import KafkaConsumer, TopicPartition

        consumer = KafkaConsumer(
            bootstrap_servers=self._bootstrap, enable_auto_commit=False, auto_offset_reset="none"
        )
        target = TopicPartition(topic, partition)
        seen: list[Seen] = []
        try:
            consumer.assign([target])
            consumer.seek(target, offset)
            while len(seen) < count:
                polled = consumer.poll(PATIENCE_MS, max_records=count - len(seen))
                assert polled, f"only {len(seen)} of {count} records came"
                seen += [_seen(record) for record in polled[target]]
        finally:
            consumer.close()
        return seen


class AiokafkaClient:
    """aiokafka."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def produce(
        self,
        topic: str,
        records: Sequence[Sent],
        *,
        codec: str = "none",
        acks: str | int = "all",
        idempotent: bool = False,
    ) -> list[int]:
        return asyncio.run(self._produce(topic, records, codec, acks, idempotent))

    async def _produce(
        self, topic: str, records: Sequence[Sent], codec: str, acks: str | int, idempotent: bool
    ) -> list[int]:
        from aiokafka import AIOKafkaProducer

        producer = AIOKafkaProducer(
            bootstrap_servers=self._bootstrap,
            compression_type=None if codec == "none" else codec,
            acks=acks,
            enable_idempotence=idempotent,
            linger_ms=5,
        )
        await producer.start()
        try:
            sending = [
                await producer.send(
                    topic,
                    record.value,
                    record.key,
                    partition=record.partition,
                    headers=list(record.headers),
                    timestamp_ms=record.timestamp,
                )
                for record in records
            ]
            told = [await asyncio.wait_for(future, PATIENCE_SECONDS) for future in sending]
            return [-1 if each is None else each.offset for each in told]
        finally:
            await producer.stop()

    def consume(self, topic: str, count: int, *, offset: int = 0, partition: int = 0) -> list[Seen]:
        return asyncio.run(self._consume(topic, count, offset, partition))

    async def _consume(self, topic: str, count: int, offset: int, partition: int) -> list[Seen]:
        from aiokafka import AIOKafkaConsumer, TopicPartition

        consumer = AIOKafkaConsumer(
            bootstrap_servers=self._bootstrap, enable_auto_commit=False, auto_offset_reset="none"
        )
        target = TopicPartition(topic, partition)
        seen: list[Seen] = []
        await consumer.start()
        try:
            consumer.assign([target])
            consumer.seek(target, offset)
            while len(seen) < count:
                polled = await consumer.getmany(target, timeout_ms=PATIENCE_MS, max_records=count - len(seen))
                assert polled, f"only {len(seen)} of {count} records came"
                seen += [_seen(record) for record in polled[target]]
        finally:
            await consumer.stop()
        return seen


class DeliveryFailed(Exception):
    """A record was refused; `code` is the client's name for the error."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


def _seen(record: Any) -> Seen:
    return Seen(record.offset, record.value, record.key, tuple(record.headers or ()), record.timestamp)


#: kafka-python has the other codecs only with packages that nothing else here needs.
CODECS = {
    "confluent-kafka": ("none", "gzip", "snappy", "lz4", "zstd"),
    "kafka-python": ("none", "gzip"),
    "aiokafka": ("none", "gzip", "snappy", "lz4", "zstd"),
}
CLIENTS: dict[str, Callable[[str], Client]] = {
    "confluent-kafka": ConfluentClient,
    "kafka-python": KafkaPythonClient,
    "aiokafka": AiokafkaClient,
}


def create_topic(bootstrap: str, name: str, partitions: int = 1, **config: str) -> str:
    """Create a topic; keywords are its configuration, with underscores for dots."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    settings = {key.replace("_", "."): value for key, value in config.items()}
    created = admin.create_topics([NewTopic(name, partitions, 1, config=settings)])
    created[name].result(PATIENCE_SECONDS)
    return name
