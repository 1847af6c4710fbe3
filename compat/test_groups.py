"""Groups beside Kafka: its tools on a node's groups, and directories that go to and fro with live ones."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, TopicPartition

from compat.support_seat import Seat, Software, chosen_target
from compat.support_tools import KafkaTools
from tests.support_e2e import PATIENCE_SECONDS, ConfluentClient, Sent, create_topic

GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
QUICK = {"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "500"}


def consumer_of(address: str, group: str, **settings: Any) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
        | {name.replace("_", "."): value for name, value in settings.items()}
    )


def consume(consumer: Consumer, count: int) -> list[bytes]:
    found: list[bytes] = []
    while len(found) < count:
        message = consumer.poll(PATIENCE_SECONDS)
        assert message is not None, f"only {len(found)} of {count} records came"
        assert message.error() is None, message.error()
        found.append(message.value())
    return found


def committed(address: str, group: str, topic: str, partitions: int) -> list[tuple[int, str | None]]:
    consumer = consumer_of(address, group)
    try:
        wanted = [TopicPartition(topic, index) for index in range(partitions)]
        return [(part.offset, part.metadata) for part in consumer.committed(wanted, PATIENCE_SECONDS)]
    finally:
        consumer.close()


class Commands:
    """ConsumerGroupCommand with an address filled in."""

    def __init__(self, java: KafkaTools, address: str) -> None:
        self._java = java
        self._address = address

    def run(self, *arguments: str) -> list[str]:
        return self._java.run(GROUPS, "--bootstrap-server", self._address, *arguments).lines

    def described(self, group: str) -> list[list[str]]:
        """The rows of `--describe`, without its head."""
        rows = [line.split() for line in self.run("--describe", "--group", group)]
        return [row for row in rows if row[0] == group]


@pytest.fixture(scope="module")
def seat(kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seat]:
    taken = Seat(tmp_path_factory.mktemp("groups"), QUICK)
    taken.format(chosen_target())
    try:
        taken.start(chosen_target())
        yield taken
    finally:
        taken.kill()


@pytest.fixture(scope="module")
def java(kafka_libs: Path) -> Iterator[KafkaTools]:
    with KafkaTools() as running:
        yield running


def test_the_group_command_does_its_work(seat: Seat, java: KafkaTools) -> None:
    commands, group = Commands(java, seat.address), f"g-{uuid4()}"
    topic = create_topic(seat.address, f"t-{uuid4()}", 1)
    ConfluentClient(seat.address).produce(topic, [Sent(b"one"), Sent(b"two"), Sent(b"three")])
    consumer = consumer_of(seat.address, group, client_id="me")
    consumer.subscribe([topic])
    consume(consumer, 2)
    consumer.commit(offsets=[TopicPartition(topic, 0, 2)], asynchronous=False)
    assert group in commands.run("--list")
    ((_, named, partition, offset, end, lag, member, host, client),) = commands.described(group)
    assert (named, partition, offset, end, lag) == (topic, "0", "2", "3", "1")
    assert (member.startswith("me-"), host, client) == (True, "/127.0.0.1", "me")
    states = commands.run("--describe", "--group", group, "--state")
    assert "Stable" in states[-1]
    assert any("Stable" in line for line in commands.run("--list", "--state"))
    consumer.close()
    reset = ("--reset-offsets", "--group", group, "--topic", topic, "--to-offset", "1", "--execute")
    commands.run(*reset)
    ((_, _, _, offset, _, lag, *_),) = commands.described(group)
    assert (offset, lag) == ("1", "2")
    commands.run("--delete-offsets", "--group", group, "--topic", topic)
    commands.run("--delete", "--group", group)
    assert group not in commands.run("--list")


def test_the_console_consumer_goes_on_where_its_group_was(seat: Seat, java: KafkaTools) -> None:
    group, topic = f"g-{uuid4()}", create_topic(seat.address, f"t-{uuid4()}", 1)
    ConfluentClient(seat.address).produce(topic, [Sent(b"one"), Sent(b"two"), Sent(b"three")])

    def take(count: int) -> list[str]:
        arguments = ("--topic", topic, "--group", group, "--from-beginning", "--max-messages", str(count))
        return java.run(CONSOLE_CONSUMER, "--bootstrap-server", seat.address, *arguments).lines

    assert take(2) == ["one", "two"]
    assert take(1) == ["three"]


@pytest.mark.parametrize("first", [Software.HEADRACE, Software.KAFKA])
@pytest.mark.parametrize("cleanly", [True, False])
def test_groups_go_back_and_forth_between_both(
    kafka_libs: Path, tmp_path: Path, first: Software, cleanly: bool
) -> None:
    second = Software.KAFKA if first is Software.HEADRACE else Software.HEADRACE
    seat = Seat(tmp_path, QUICK)
    seat.format(first)
    try:
        seat.start(first)
        topic = create_topic(seat.address, "t", 2)
        produced = [Sent(str(number).encode(), partition=number % 2) for number in range(10)]
        ConfluentClient(seat.address).produce(topic, produced)
        live = consumer_of(seat.address, "live", session_timeout_ms=2000, group_instance_id="one")
        live.subscribe([topic])
        consume(live, 6)
        offsets = [TopicPartition(topic, 0, 3, "half-way"), TopicPartition(topic, 1, 2)]
        live.commit(offsets=offsets, asynchronous=False)
        if cleanly:
            seat.stop()
        else:
            seat.kill()
        seat.start(second)
        assert committed(seat.address, "live", topic, 2) == [(3, "half-way"), (2, None)]
        back = consumer_of(seat.address, "live", session_timeout_ms=2000, group_instance_id="one")
        back.subscribe([topic])
        assert sorted(map(int, consume(back, 5))) == [5, 6, 7, 8, 9]
        back.commit(asynchronous=False)
        back.close()
        live.close()
        seat.stop()
        seat.start(first)
        assert [offset for offset, _ in committed(seat.address, "live", topic, 2)] == [5, 5]
    finally:
        seat.kill()
