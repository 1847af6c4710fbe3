"""Directories that a Kafka 4.3.1 has left, cleanly or killed, are started as they are."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.support_cli import unpack_fixture
from tests.support_e2e import PATIENCE_SECONDS, ConfluentClient, Sent
from tests.support_node import RunningNode

LONG = 200
EXPECTED = json.loads((Path(__file__).parents[1] / "fixtures" / "expected-records.json").read_text())


@pytest.fixture(params=["clean-shutdown", "killed"])
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RunningNode]:
    """A node on a directory of Kafka's."""
    data = unpack_fixture(request.param, tmp_path / "unpacked")
    (tmp_path / "node").mkdir()
    data.rename(tmp_path / "node" / "data")
    node = RunningNode(tmp_path / "node", is_formatted=True)
    yield node.start()
    node.kill()


def text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "backslashreplace")


def abridged(value: str | None) -> str | dict[str, int] | None:
    """Of long values the expected records tell the length only."""
    return {"len": len(value)} if value is not None and len(value) >= LONG else value


def read_all(node: RunningNode, topic: str, isolation: str) -> list[list[Any]]:
    """Every record of a topic, in the form of the expected ones."""
    consumer = Consumer(
        {
            "bootstrap.servers": node.bootstrap,
            "group.id": "not-used",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "check.crcs": True,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
        }
    )
    found: list[list[Any]] = []
    try:
        partitions = sorted(consumer.list_topics(topic, PATIENCE_SECONDS).topics[topic].partitions)
        for partition in partitions:
            start, _ = consumer.get_watermark_offsets(TopicPartition(topic, partition), PATIENCE_SECONDS)
            consumer.assign([TopicPartition(topic, partition, start)])
            while (message := consumer.poll(PATIENCE_SECONDS)) is not None:
                if message.error() is not None:
                    assert message.error().name() == "_PARTITION_EOF", message.error()
                    break
                kind, timestamp = message.timestamp()
                headers = [[name, text(value)] for name, value in message.headers() or ()]
                found.append(
                    [
                        partition,
                        message.offset(),
                        kind,
                        timestamp,
                        text(message.key()),
                        abridged(text(message.value())),
                        headers,
                    ]
                )
    finally:
        consumer.close()
    return found


@pytest.mark.parametrize("isolation", list(EXPECTED))
def test_every_record_is_read_as_kafka_has_written_it(node: RunningNode, isolation: str) -> None:
    for topic, expected in EXPECTED[isolation].items():
        assert read_all(node, topic, isolation) == expected, topic


def test_it_is_written_to_and_started_again(node: RunningNode) -> None:
    client = ConfluentClient(node.bootstrap)
    before = read_all(node, "plain", "read_uncommitted")
    client.produce("plain", [Sent(b"by Headrace")])
    for hard in (False, True):
        node.restart(hard=hard)
        after = read_all(node, "plain", "read_uncommitted")
        added = [record for record in after if record not in before]
        assert [record[5] for record in added] == ["by Headrace"]
        assert [record for record in after if record in before] == before
