"""Transactional clients from PyPI, and a program that consumes, transforms and produces exactly once."""

import asyncio
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tests.support_node import RunningNode

PATIENCE_SECONDS = 60.0

#: A transaction: the values to write, and whether to commit them.
Transaction = tuple[Sequence[bytes], bool]


def with_confluent(bootstrap: str, name: str, topic: str, transactions: Sequence[Transaction]) -> None:
    """Run transactions with confluent-kafka."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(PATIENCE_SECONDS)
    for values, commits in transactions:
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value, partition=0)
        end = producer.commit_transaction if commits else producer.abort_transaction
        producer.flush(PATIENCE_SECONDS)
        end(PATIENCE_SECONDS)


def with_kafka_python(bootstrap: str, name: str, topic: str, transactions: Sequence[Transaction]) -> None:
    """Run transactions with kafka-python."""
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=name)
    producer.init_transactions()
    for values, commits in transactions:
        producer.begin_transaction()
        for value in values:
            producer.send(topic, value, partition=0)
        producer.flush(PATIENCE_SECONDS)
        if commits:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    producer.close()


def with_aiokafka(bootstrap: str, name: str, topic: str, transactions: Sequence[Transaction]) -> None:
    """Run transactions with aiokafka."""

    async def run() -> None:
        from aiokafka import AIOKafkaProducer

        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=name)
        await producer.start()
        try:
            for values, commits in transactions:
                await producer.begin_transaction()
                for value in values:
                    await producer.send(topic, value, partition=0)
                await producer.flush()
                if commits:
                    await producer.commit_transaction()
                else:
                    await producer.abort_transaction()
        finally:
            await producer.stop()

    asyncio.run(run())


TRANSACTIONAL_CLIENTS: dict[str, Callable[[str, str, str, Sequence[Transaction]], None]] = {
    "confluent-kafka": with_confluent,
    "kafka-python": with_kafka_python,
    "aiokafka": with_aiokafka,
}


def committed_values(bootstrap: str, topic: str, partition: int = 0) -> list[bytes]:
    """Everything that a read_committed consumer sees until it has reached the end."""
    return [value for _, value in _read(bootstrap, topic, partition, "read_committed")]


def all_values(bootstrap: str, topic: str, partition: int = 0) -> list[bytes]:
    """Everything that lies in a partition, aborted or not."""
    return [value for _, value in _read(bootstrap, topic, partition, "read_uncommitted")]


def _read(bootstrap: str, topic: str, partition: int, isolation: str) -> Iterator[tuple[int, bytes]]:
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "not-used",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0)])
    try:
        while True:
            message = consumer.poll(PATIENCE_SECONDS)
            assert message is not None, f"the end of {topic}-{partition} was not reached"
            error = message.error()
            if error is None:
                yield message.offset(), message.value()
            elif error.code() == KafkaError._PARTITION_EOF:
                return
            else:
                raise AssertionError(str(error))
    finally:
        consumer.close()


class Killer:
    """Kills a node and starts it again, a number of times, each when a program has gone so many steps."""

    def __init__(self, node: RunningNode, seed: int, rounds: int, steps_between: tuple[int, int]) -> None:
        self._node = node
        self._random = random.Random(seed)
        self._rounds = rounds
        self._steps_between = steps_between
        self._steps = 0
        self._changed = threading.Condition()
        self._is_over = False
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Killer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._is_over = True
            self._changed.notify_all()
        self._thread.join()

    @property
    def is_done(self) -> bool:
        """Whether all rounds are over."""
        return not self._thread.is_alive()

    def step(self) -> None:
        """The program has done something."""
        with self._changed:
            self._steps += 1
            self._changed.notify_all()

    def _run(self) -> None:
        try:
            for _ in range(self._rounds):
                target = self._steps + self._random.randint(*self._steps_between)
                with self._changed:
                    self._changed.wait_for(lambda target=target: self._is_over or self._steps >= target)  # type: ignore[misc]
                if self._is_over:
                    return
                self._node.restart(hard=True)
        except BaseException as error:  # noqa: BLE001 - told to the test, which runs in another thread
            self.failure = error


class Transformer:
    """Copies a topic into another one, exactly once, whatever happens to the node meanwhile."""

    def __init__(self, bootstrap: str, source: str, sink: str, step: Callable[[], None]) -> None:
        self._bootstrap = bootstrap
        self._source = source
        self._sink = sink
        self._step = step
        self._session = 0
        self.fenced = 0

    def run(self, count: int, is_enough: Callable[[], bool]) -> None:
        """Go on until the group has committed `count` records and nothing more is going to happen."""
        while self._committed() < count or not is_enough():
            try:
                self._run_session(count, is_enough)
            except Restart:
                self.fenced += 1

    def _run_session(self, count: int, is_enough: Callable[[], bool]) -> None:
        from confluent_kafka import Consumer, KafkaException, Producer

        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "transactional.id": "transformer",
                "transaction.timeout.ms": 30_000,
                "reconnect.backoff.max.ms": 200,
                # Otherwise librdkafka 2.16 forgets the node when it is down, but not that it coordinates
                # the group, and waits for the forgotten one without end.
                "metadata.recovery.strategy": "none",
                "retry.backoff.ms": 20,
                "log_level": 0,
            }
        )
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "transformers",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "reconnect.backoff.max.ms": 200,
                "session.timeout.ms": 6_000,
                "log_level": 0,
            }
        )
        try:
            self._retried(lambda: producer.init_transactions(5))
            consumer.subscribe([self._source])
            while not (is_enough() and self._committed() >= count):
                self._transform(producer, consumer)
        except KafkaException as error:
            raise Restart from error
        finally:
            consumer.close()

    def _transform(self, producer: Any, consumer: Any) -> None:
        from confluent_kafka import KafkaException

        messages = [each for each in consumer.consume(7, timeout=0.2) if each.error() is None]
        self._step()
        if not messages:
            return
        producer.begin_transaction()
        try:
            for message in messages:
                producer.produce(self._sink, message.value(), partition=message.partition())
                self._step()
            offsets = consumer.position(consumer.assignment())
            metadata = consumer.consumer_group_metadata()
            self._retried(lambda: producer.send_offsets_to_transaction(offsets, metadata, 5))
            self._step()
            self._retried(lambda: producer.commit_transaction(5))
            self._step()
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            self._retried(lambda: producer.abort_transaction(5))
            raise Restart from error

    def _retried(self, call: Callable[[], object]) -> None:
        """The node may be down for a while: what can be tried again is."""
        from confluent_kafka import KafkaException

        while True:
            try:
                call()
                return
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise
                self._step()

    def _committed(self) -> int:
        """How many records of the source the group is through with."""
        from confluent_kafka import Consumer, KafkaException, TopicPartition

        consumer = Consumer(
            {"bootstrap.servers": self._bootstrap, "group.id": "transformers", "log_level": 0}
        )
        try:
            found = consumer.committed([TopicPartition(self._source, each) for each in (0, 1)], 5)
        except KafkaException:
            # The node is down; whoever asks does so again.
            return 0
        finally:
            consumer.close()
        return sum(max(each.offset, 0) for each in found)


class Restart(Exception):
    """A client can't go on: begin with new ones."""
