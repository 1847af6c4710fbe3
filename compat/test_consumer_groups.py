"""Consumer groups beside Kafka: its tools and its consumer on a node's groups, and live groups that move."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import TopicPartition

from compat.support_seat import Seat, Software, chosen_target
from compat.support_tools import KafkaTools
from compat.test_groups import CONSOLE_CONSUMER, Commands, committed, consume, consumer_of
from tests.support_e2e import ConfluentClient, Sent, create_topic

QUICK = {
    "group.consumer.session.timeout.ms": "2000",
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.assignment.interval.ms": "0",
}
RECORDS = [Sent(b"one"), Sent(b"two"), Sent(b"three")]


@pytest.fixture(scope="module")
def seat(kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seat]:
    taken = Seat(tmp_path_factory.mktemp("consumer-groups"), QUICK)
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


def test_the_group_command_knows_consumer_groups(seat: Seat, java: KafkaTools) -> None:
    commands, group = Commands(java, seat.address), f"g-{uuid4()}"
    topic = create_topic(seat.address, f"t-{uuid4()}", 1)
    ConfluentClient(seat.address).produce(topic, RECORDS)
    consumer = consumer_of(seat.address, group, client_id="me", group_protocol="consumer")
    consumer.subscribe([topic])
    consume(consumer, 2)
    consumer.commit(offsets=[TopicPartition(topic, 0, 2)], asynchronous=False)
    assert [group, "Consumer"] in [line.split() for line in commands.run("--list", "--type", "consumer")]
    assert not any(group in line for line in commands.run("--list", "--type", "classic"))
    ((_, named, partition, offset, end, lag, _, host, client),) = commands.described(group)
    assert (named, partition, offset, end, lag) == (topic, "0", "2", "3", "1")
    assert (host, client) == ("/127.0.0.1", "me")
    state = commands.run("--describe", "--group", group, "--state", "--verbose")[-1].split()
    assert state[-5:] == ["uniform", "Stable", "2", "2", "1"]
    member = commands.run("--describe", "--group", group, "--members", "--verbose")[-1]
    assert f"{topic}:0" in member
    consumer.close()
    assert "Empty" in commands.run("--describe", "--group", group, "--state")[-1]
    commands.run("--reset-offsets", "--group", group, "--topic", topic, "--to-offset", "1", "--execute")
    ((_, _, _, offset, _, lag, *_),) = commands.described(group)
    assert (offset, lag) == ("1", "2")
    commands.run("--delete", "--group", group)
    assert group not in commands.run("--list")


@pytest.mark.parametrize(
    "protocols", [("consumer", "consumer"), ("classic", "consumer"), ("consumer", "classic")]
)
def test_the_console_consumer_goes_on_where_its_group_was(
    seat: Seat, java: KafkaTools, protocols: tuple[str, str]
) -> None:
    group, topic = f"g-{uuid4()}", create_topic(seat.address, f"t-{uuid4()}", 1)
    ConfluentClient(seat.address).produce(topic, RECORDS)

    def take(count: int, protocol: str) -> list[str]:
        arguments = ("--topic", topic, "--group", group, "--from-beginning", "--max-messages", str(count))
        spoken = ("--command-property", f"group.protocol={protocol}")
        return java.run(CONSOLE_CONSUMER, "--bootstrap-server", seat.address, *arguments, *spoken).lines

    assert take(2, protocols[0]) == ["one", "two"]
    assert take(1, protocols[1]) == ["three"]


@pytest.mark.parametrize("first", [Software.HEADRACE, Software.KAFKA])
def test_live_groups_go_back_and_forth_between_both(
    kafka_libs: Path, tmp_path: Path, first: Software
) -> None:
    """Members stay members: whoever starts on the directory finds their epochs and assignments."""
    second = Software.KAFKA if first is Software.HEADRACE else Software.HEADRACE
    seat = Seat(tmp_path, QUICK | {"group.consumer.session.timeout.ms": "60000"})
    seat.format(first)
    try:
        seat.start(first)
        topic = create_topic(seat.address, "t", 2)
        client = ConfluentClient(seat.address)
        client.produce(topic, [Sent(str(number).encode(), partition=number % 2) for number in range(10)])
        live = consumer_of(seat.address, "live", group_protocol="consumer", group_instance_id="one")
        live.subscribe(["^t.*"])
        assert sorted(map(int, consume(live, 10))) == list(range(10))
        live.commit(asynchronous=False)
        for software in (second, first):
            seat.kill()
            seat.start(software)
            assert [offset for offset, _ in committed(seat.address, "live", topic, 2)] == [5, 5]
        client = ConfluentClient(seat.address)
        client.produce(topic, [Sent(str(number).encode(), partition=number % 2) for number in range(10, 14)])
        assert sorted(map(int, consume(live, 4))) == [10, 11, 12, 13]
        live.commit(asynchronous=False)
        live.close()
        assert [offset for offset, _ in committed(seat.address, "live", topic, 2)] == [7, 7]
    finally:
        seat.kill()
