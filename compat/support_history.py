"""What is done to a cluster while its directory passes from hand to hand, and what must be seen of it then.

A `History` writes to topics of many kinds and remembers each acknowledged record by its offset. `check`
compares what a client sees with what was written; nothing of it depends on who serves.
"""

import itertools
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from compat.support_contents import BROKER_RESOURCE, ClusterSeen, RecordSeen, read_all, see
from compat.support_raw import PATIENCE_S, ask
from compat.support_sequences import SequencedProducer
from headrace.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.support_e2e import ConfluentClient, Sent

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
LONG_AGO = 1_700_000_000_000
POLL_S = 0.1
#: Clients need not tell that a broker has gone: that is what happens here.
QUIET = 0
KEYS_COMPACTED = 20
FOREVER = {"retention.ms": "-1"}
QUICKLY_COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "segment.ms": "100",
}
TOPICS: dict[str, tuple[int, dict[str, str]]] = {
    "plain": (3, FOREVER),
    "rolled": (1, FOREVER | {"segment.bytes": "1048576", "index.interval.bytes": "512"}),
    "recompressed": (1, FOREVER | {"compression.type": "zstd"}),
    "append-time": (1, FOREVER | {"message.timestamp.type": "LogAppendTime"}),
    "trimmed": (1, FOREVER),
    "compacted": (1, QUICKLY_COMPACTED),
    "transactional": (1, FOREVER),
    "sequenced": (1, FOREVER),
    "continued": (1, FOREVER),
    "grown": (1, {}),
}
#: Properties of both that make what happens in hours happen in a test.
QUICK_UPKEEP = {
    "log.cleaner.backoff.ms": "200",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "log.cleaner.threads": "1",
    "log.initial.task.delay.ms": "500",
    "log.flush.start.offset.checkpoint.interval.ms": "500",
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "2500",
}


class History:
    """Everything that was done so far."""

    def __init__(self, address: str, data_dir: Path) -> None:
        self._address = address
        self._data_dir = data_dir
        self._client = ConfluentClient(address)
        self._admin = AdminClient({"bootstrap.servers": address, "log_level": QUIET})
        self._written: dict[tuple[str, int], dict[int, Sent]] = defaultdict(dict)
        self._append_times: dict[int, int] = {}
        self._starts: dict[tuple[str, int], int] = {}
        self._committed: list[bytes] = []
        self._committed_offset: int | None = None
        self._topic_configs: dict[str, str] = {}
        self._partitions_of_grown = 1
        self._rounds = 0
        self._sequenced = SequencedProducer(address, "sequenced")
        self.continued = ContinuedProducer(address, "continued")

    def create_topics(self) -> None:
        """The first thing to be done."""
        wanted = [NewTopic(name, count, 1, config=config) for name, (count, config) in TOPICS.items()]
        for created in self._admin.create_topics(wanted).values():
            created.result(PATIENCE_S)
        self._await_topics(TOPICS)

    def write_round(self, *, has_coordinators: bool) -> None:
        """Add to every topic, and change what can be changed. Transactions and groups need coordinators."""
        number = self._rounds
        self._rounds += 1
        for partition in range(3):
            self._write("plain", number, 60, codec=CODECS[(number + partition) % 5], partition=partition)
        self._write("rolled", number, 150, value_size=10_000)
        for topic, codec in (("recompressed", "gzip"), ("append-time", "lz4"), ("trimmed", "none")):
            self._write(topic, number, 50, codec=codec)
        self._write("compacted", number, 200, keys=KEYS_COMPACTED)
        # Much later by its timestamp: this ends the segment of the others, which can then be compacted.
        self._write("compacted", number, 1, first=50_000, keys=KEYS_COMPACTED)
        self._trim(number)
        if has_coordinators:
            self._write_transactions(number)
            self._commit_offset(number)
        self._sequenced.write()
        self._change_configs(number)
        self._change_topics(number)
        self._await_compaction()

    def check(self, *, has_coordinators: bool) -> ClusterSeen:
        """Whether everything that was acknowledged is there, and nothing else; and what there is."""
        self._sequenced.check()
        seen = see(self._address)
        for (topic, index), written in self._written.items():
            records = seen.topics[topic].partitions[index].uncommitted
            if topic == "compacted":
                _check_compacted(written, records)
            else:
                start = self._starts.get((topic, index), 0)
                expected = {offset: sent for offset, sent in written.items() if offset >= start}
                _check_records(topic, expected, records)
        for (topic, index), start in self._starts.items():
            assert seen.topics[topic].partitions[index].start == start
        self._check_append_times(seen.topics["append-time"].partitions[0].uncommitted)
        transactional = seen.topics["transactional"].partitions[0].committed
        assert [record.value for record in transactional] == self._committed
        self._check_metadata(seen)
        if has_coordinators and self._committed_offset is not None:
            place = TopicPartition("plain", 0)
            committed = self._group(lambda group: group.committed([place], PATIENCE_S))
            assert committed == self._committed_offset
        return seen

    def close(self) -> None:
        """Let go of the clients."""
        self.continued.close()

    def _write(
        self,
        topic: str,
        number: int,
        count: int,
        *,
        codec: str = "none",
        partition: int = 0,
        first: int = 0,
        keys: int = 1_000_000,
        value_size: int = 20,
    ) -> None:
        records = [
            Sent(
                value=None if index % 17 == 5 else (b"%d-%d " % (number, index)).ljust(value_size, b"v"),
                key=b"key-%d" % (index % keys),
                headers=(("round", b"%d" % number), ("empty", b"")) if index % 3 == 0 else (),
                timestamp=LONG_AGO + number * 100_000 + index,
                partition=partition,
            )
            for index in range(first, first + count)
        ]
        offsets = self._client.produce(topic, records, codec=codec)
        self._written[topic, partition].update(zip(offsets, records, strict=True))

    def _trim(self, number: int) -> None:
        start = number * 50 + 17
        wanted = TopicPartition("trimmed", 0, start)
        for done in self._admin.delete_records([wanted]).values():
            assert done.result(PATIENCE_S).low_watermark == start
        self._starts["trimmed", 0] = start
        # Written behind the reply: without this a kill may bring deleted records back, on Kafka as well.
        checkpoint = self._data_dir / "log-start-offset-checkpoint"
        line = f"trimmed 0 {start}"
        _await(
            lambda: checkpoint.exists() and line in checkpoint.read_text().splitlines(),
            f"{line} in {checkpoint}",
        )

    def _write_transactions(self, number: int) -> None:
        producer = Producer(
            {"bootstrap.servers": self._address, "transactional.id": "writer", "log_level": QUIET}
        )
        producer.init_transactions(PATIENCE_S)
        for is_kept in (True, False, True):
            producer.begin_transaction()
            values = [b"%d-%d-%s" % (number, index, b"yes" if is_kept else b"no") for index in range(20)]
            for value in values:
                producer.produce("transactional", value, partition=0)
            if is_kept:
                producer.commit_transaction(PATIENCE_S)
                self._committed += values
            else:
                assert producer.flush(PATIENCE_S) == 0
                producer.abort_transaction(PATIENCE_S)

    def _commit_offset(self, number: int) -> None:
        self._committed_offset = number * 10 + 5
        place = TopicPartition("plain", 0, self._committed_offset)
        self._group(lambda group: group.commit(offsets=[place], asynchronous=False))

    def _group(self, use: Callable[[Consumer], list[TopicPartition]]) -> int:
        """The offset that a member of the group ends up with."""
        consumer = Consumer({"bootstrap.servers": self._address, "group.id": "readers", "log_level": QUIET})
        try:
            (place,) = use(consumer)
            assert place.error is None
            return int(place.offset)
        finally:
            consumer.close()

    def _change_configs(self, number: int) -> None:
        set_one, delete_one = (AlterConfigOpType.SET, AlterConfigOpType.DELETE)
        last = "max.compaction.lag.ms" if number % 2 else "file.delete.delay.ms"
        first = "file.delete.delay.ms" if number % 2 else "max.compaction.lag.ms"
        value = str(1000 + number)
        self._alter(ResourceType.TOPIC, "plain", (last, value, set_one), (first, None, delete_one))
        self._topic_configs = {last: value, "retention.ms": "-1"}
        self._alter(ResourceType.BROKER, "1", ("log.cleaner.io.buffer.size", str(600_000 + number), set_one))
        alter_default_config(self._address, "message.max.bytes", str(2_000_000 + number))

    def _alter(
        self, kind: ResourceType, name: str, *changes: tuple[str, str | None, AlterConfigOpType]
    ) -> None:
        entries = [ConfigEntry(key, value, incremental_operation=how) for key, value, how in changes]
        resource = ConfigResource(kind, name, incremental_configs=entries)
        for done in self._admin.incremental_alter_configs([resource]).values():
            done.result(PATIENCE_S)

    def _change_topics(self, number: int) -> None:
        short_lived, lasting = f"gone-{number}", f"made-{number}"
        for done in self._admin.create_topics(
            [NewTopic(short_lived, 2, 1), NewTopic(lasting, 1, 1, config=FOREVER)]
        ).values():
            done.result(PATIENCE_S)
        self._await_topics([short_lived, lasting])
        self._write(lasting, number, 5)
        for done in self._admin.delete_topics([short_lived]).values():
            done.result(PATIENCE_S)
        self._partitions_of_grown += 1
        grown = NewPartitions("grown", self._partitions_of_grown)
        for done in self._admin.create_partitions([grown]).values():
            done.result(PATIENCE_S)
        _await(lambda: short_lived not in self._topics(), f"the end of {short_lived}")
        _await(lambda: self._topics()["grown"] == self._partitions_of_grown, "partitions of grown")

    def _topics(self) -> dict[str, int]:
        listed = self._admin.list_topics(timeout=PATIENCE_S).topics
        return {name: len(topic.partitions) for name, topic in listed.items() if topic.error is None}

    def _await_topics(self, names: Iterable[str]) -> None:
        wanted = set(names)
        _await(lambda: wanted <= self._topics().keys(), f"topics {wanted}")

    def _await_compaction(self) -> None:
        """The cleaner leaves one record of each key, and the active segment as it is."""

        def is_compacted() -> bool:
            return len(see_records(self._address, "compacted")) <= KEYS_COMPACTED + 1

        _await(is_compacted, "compaction")

    def _check_append_times(self, records: Iterable[RecordSeen]) -> None:
        """A time that the broker gave is not known beforehand, but it may never change."""
        for record in records:
            assert record.timestamp_type == 2
            assert self._append_times.setdefault(record.offset, record.timestamp) == record.timestamp
            assert record.timestamp > LONG_AGO + 1_000_000_000

    def _check_metadata(self, seen: ClusterSeen) -> None:
        made = {f"made-{number}" for number in range(self._rounds)}
        assert seen.topics.keys() == TOPICS.keys() | made
        assert len(seen.topics["grown"].partitions) == self._partitions_of_grown
        if self._rounds:
            last = self._rounds - 1
            own = {key: value for key, (value, source) in seen.topics["plain"].configs.items() if source == 1}
            assert own == self._topic_configs
            assert seen.broker_configs["log.cleaner.io.buffer.size"] == (str(600_000 + last), 2)
            assert seen.default_configs["message.max.bytes"] == (str(2_000_000 + last), 3)


class ContinuedProducer:
    """An idempotent producer that lives through everything and numbers what it sends."""

    def __init__(self, address: str, topic: str) -> None:
        self._topic = topic
        self._producer = Producer(
            {
                "bootstrap.servers": address,
                "enable.idempotence": True,
                "message.timeout.ms": 300_000,
                "linger.ms": 2,
                "batch.num.messages": 20,
                "reconnect.backoff.max.ms": 500,
                "log_level": QUIET,
            }
        )
        self._failures: list[Any] = []
        self._delivered = itertools.count()
        self._last_delivered = -1
        self.sent = 0

    def send(self, count: int) -> None:
        """Send the next numbers and wait for the first half: the rest is on its way when this returns."""
        wanted = self._last_delivered + 1 + count // 2
        for _ in range(count):
            self._producer.produce(self._topic, b"%d" % self.sent, partition=0, on_delivery=self._on_delivery)
            self.sent += 1
        while self._last_delivered < wanted and not self._failures:
            assert self._producer.poll(PATIENCE_S), "nothing was delivered"

    def finish(self) -> list[bytes]:
        """Wait until everything is acknowledged; what must be in the topic now."""
        assert self._producer.flush(PATIENCE_S) == 0
        assert self._failures == []
        return [b"%d" % number for number in range(self.sent)]

    def close(self) -> None:
        self._producer.purge()

    def _on_delivery(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failures.append(error)
        self._last_delivered = next(self._delivered)


def see_records(address: str, topic: str) -> tuple[RecordSeen, ...]:
    """Every record of the first partition of a topic."""
    return read_all(address, [(topic, 0)], "read_uncommitted")[topic, 0]


def alter_default_config(address: str, name: str, value: str) -> None:
    """Set a configuration of all brokers, which confluent-kafka cannot name."""
    change = AlterableConfig(name=name, config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=BROKER_RESOURCE, resource_name="", configs=[change])
    request = IncrementalAlterConfigsRequest(resources=[resource])
    (answer,) = ask(address, request, 1, IncrementalAlterConfigsResponse).responses
    assert answer.error_code == 0, answer


def _check_records(topic: str, expected: dict[int, Sent], records: tuple[RecordSeen, ...]) -> None:
    offsets = [record.offset for record in records]
    assert offsets == sorted(expected), f"{topic}: {offsets} for {sorted(expected)}"
    for record in records:
        _check_record(expected[record.offset], record, with_time=topic != "append-time")


def _check_compacted(written: dict[int, Sent], records: tuple[RecordSeen, ...]) -> None:
    """Offsets stay, and so does the last record of every key."""
    last_of_keys = {sent.key: offset for offset, sent in sorted(written.items())}
    offsets = [record.offset for record in records]
    assert offsets == sorted(set(offsets))
    assert set(last_of_keys.values()) <= set(offsets)
    for record in records:
        _check_record(written[record.offset], record, with_time=True)


def _check_record(sent: Sent, record: RecordSeen, *, with_time: bool) -> None:
    assert (record.key, record.value, record.headers) == (sent.key, sent.value, sent.headers)
    if with_time:
        assert (record.timestamp_type, record.timestamp) == (1, sent.timestamp)


def _await(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come"
        pause.wait(POLL_S)
