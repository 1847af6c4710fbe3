"""Groups under load: a producer that never rests, consumers that come, go and die, and somebody who watches.

A consumer notes a record before it commits it, so what was committed and never noted was lost."""

import asyncio
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from headrace.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from tests.support_answers import Connection

TOPIC = "load"
GROUP = "load"
PARTITIONS = 6
SESSION_MS = 1_500
HEARTBEAT_MS = 300
PATIENCE_SECONDS = 60.0
NOTE = "note"


class Notes:
    """Which records were consumed, by partition and offset."""

    def __init__(self) -> None:
        self._offsets: dict[int, set[int]] = defaultdict(set)
        self._changed = threading.Condition()

    def add(self, partition: int, offset: int) -> None:
        with self._changed:
            self._offsets[partition].add(offset)
            self._changed.notify_all()

    def count(self) -> int:
        return sum(map(len, self._offsets.values()))

    def wait_for(self, condition: Callable[["Notes"], bool], what: str) -> None:
        """Return when a condition holds; fail if that takes too long."""
        with self._changed:
            if not self._changed.wait_for(lambda: condition(self), PATIENCE_SECONDS):
                raise AssertionError(f"{what} did not happen; {self.count()} records were consumed")

    def missing(self, ends: dict[int, int]) -> dict[int, list[int]]:
        """Records that nobody consumed."""
        return {
            partition: [offset for offset in range(end) if offset not in self._offsets[partition]]
            for partition, end in ends.items()
            if len(self._offsets[partition] & set(range(end))) < end
        }


class Producing:
    """Produces until it is stopped."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.ends: dict[int, int] = defaultdict(int)

    def __enter__(self) -> "Producing":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(PATIENCE_SECONDS)

    def _run(self) -> None:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self._bootstrap, "linger.ms": 5})

        def on_delivery(error: Any, message: Any) -> None:
            assert error is None, error
            self.ends[message.partition()] = max(self.ends[message.partition()], message.offset() + 1)

        number = 0
        while not self._stopping.wait(0.005):
            for _ in range(5):
                producer.produce(
                    TOPIC, str(number).encode(), partition=number % PARTITIONS, on_delivery=on_delivery
                )
                number += 1
            producer.poll(0)
        producer.flush(PATIENCE_SECONDS)


class Watching:
    """Asks for the group's offsets over and over; they must never go back."""

    def __init__(self, host: str, port: int) -> None:
        self._address = host, port
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.committed: dict[int, int] = defaultdict(int)
        self.steps_back: list[str] = []

    def __enter__(self) -> "Watching":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(PATIENCE_SECONDS)

    def _run(self) -> None:
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=GROUP, topics=None)])
        with Connection(*self._address) as connection:
            while not self._stopping.wait(0.02):
                reply = connection.ask(request, 8)
                if isinstance(reply, OffsetFetchResponse):
                    self._compare(reply)

    def _compare(self, reply: OffsetFetchResponse) -> None:
        for topic in reply.groups[0].topics:
            for partition in topic.partitions:
                index, offset = partition.partition_index, partition.committed_offset
                if offset < self.committed[index]:
                    self.steps_back.append(f"{index}: {self.committed[index]} -> {offset}")
                self.committed[index] = offset


class Member:
    """A consumer in a thread of its own; `leave` it in an orderly way."""

    def __init__(self, run: Callable[[threading.Event], None]) -> None:
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._guarded, args=(run,))
        self._thread.start()

    def _guarded(self, run: Callable[[threading.Event], None]) -> None:
        try:
            run(self._stopping)
        except BaseException as error:  # noqa: BLE001 - told to whoever waits for the thread
            self._failure = error

    def leave(self) -> None:
        self._stopping.set()
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive(), "a consumer does not stop"
        assert self._failure is None, repr(self._failure)


def confluent_member(bootstrap: str, notes: Notes, strategy: str = "range") -> Member:
    """confluent-kafka, eager or cooperative."""
    from confluent_kafka import Consumer, KafkaException

    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": GROUP,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "partition.assignment.strategy": strategy,
        "session.timeout.ms": SESSION_MS,
        "heartbeat.interval.ms": HEARTBEAT_MS,
        "fetch.wait.max.ms": 50,
    }

    def run(stopping: threading.Event) -> None:
        consumer = Consumer(settings)
        consumer.subscribe([TOPIC])
        try:
            while not stopping.is_set():
                messages = consumer.consume(50, 0.1)
                for message in messages:
                    if message.error() is None:
                        notes.add(message.partition(), message.offset())
                if messages:
                    # A rebalance may have come between: then somebody else commits.
                    try:
                        consumer.commit(asynchronous=False)
                    except KafkaException as error:
                        if not is_lost_to_rebalance(error.args[0].code()):
                            raise
        finally:
            consumer.close()

    return Member(run)


def is_lost_to_rebalance(code: int) -> bool:
    """Errors of commits that came too late; -168 is librdkafka's word for nothing to commit."""
    return code in (22, 25, 27, -168)


def kafka_python_member(bootstrap: str, notes: Notes) -> Member:
    """kafka-python, eager."""
    from kafka import KafkaConsumer
    from kafka.errors import KafkaError

    def run(stopping: threading.Event) -> None:
        consumer = KafkaConsumer(
            TOPIC,
            bootstrap_servers=bootstrap,
            group_id=GROUP,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            fetch_max_wait_ms=50,
        )
        try:
            while not stopping.is_set():
                found = consumer.poll(timeout_ms=100, max_records=50)
                for messages in found.values():
                    for message in messages:
                        notes.add(message.partition, message.offset)
                if found:
                    try:
                        consumer.commit()
                    except KafkaError as error:
                        if not is_lost_to_rebalance(getattr(error, "errno", -1)) and not _is_commit_failure(
                            error
                        ):
                            raise
        finally:
            consumer.close()

    return Member(run)


def _is_commit_failure(error: BaseException) -> bool:
    return type(error).__name__ in ("CommitFailedError", "RebalanceInProgressError")


def aiokafka_member(bootstrap: str, notes: Notes) -> Member:
    """aiokafka, on an event loop in the member's thread."""
    from aiokafka import AIOKafkaConsumer
    from aiokafka.errors import CommitFailedError

    async def consume(stopping: threading.Event) -> None:
        consumer = AIOKafkaConsumer(
            TOPIC,
            bootstrap_servers=bootstrap,
            group_id=GROUP,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            fetch_max_wait_ms=50,
        )
        await consumer.start()
        try:
            while not stopping.is_set():
                found = await consumer.getmany(timeout_ms=100, max_records=50)
                for messages in found.values():
                    for message in messages:
                        notes.add(message.partition, message.offset)
                if found:
                    try:
                        await consumer.commit()
                    except CommitFailedError:
                        continue
        finally:
            await consumer.stop()

    return Member(lambda stopping: asyncio.run(consume(stopping)))


@contextmanager
def doomed_member(
    bootstrap: str, notes: Notes, module: str = "tests.support_group_load"
) -> Iterator["subprocess.Popen[str]"]:
    """A consumer in a process of its own, killed at the end: it never says goodbye."""
    command = [sys.executable, "-m", module, bootstrap]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        reader = threading.Thread(target=_read_notes, args=(process, notes))
        reader.start()
        try:
            yield process
        finally:
            process.kill()
            reader.join(PATIENCE_SECONDS)


def _read_notes(process: "subprocess.Popen[str]", notes: Notes) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        word, _, rest = line.partition(" ")
        if word == NOTE:
            partition, offset = map(int, rest.split())
            notes.add(partition, offset)


class PrintedNotes(Notes):
    """Notes for whoever reads this process's output."""

    def add(self, partition: int, offset: int) -> None:
        sys.stdout.write(f"{NOTE} {partition} {offset}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    confluent_member(sys.argv[1], PrintedNotes())
