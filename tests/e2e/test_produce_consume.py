"""What clients produce is what clients consume."""

from collections.abc import Callable
from itertools import product

import pytest

from tests.support_e2e import CLIENTS, CODECS, Client, ConfluentClient, DeliveryFailed, Seen, Sent
from tests.support_node import RunningNode


def as_seen(records: list[Sent], first_offset: int = 0) -> list[Seen]:
    return [
        Seen(offset, record.value, record.key, record.headers)
        for offset, record in enumerate(records, first_offset)
    ]


def some_records(count: int) -> list[Sent]:
    return [
        Sent(b"value %d " % number * (1 + number % 7), b"key %d" % (number % 11)) for number in range(count)
    ]


@pytest.mark.parametrize(("name", "codec"), [(name, codec) for name in CODECS for codec in CODECS[name]])
def test_records_of_every_codec_come_back_as_they_were(
    shared_node: RunningNode, topic: str, name: str, codec: str
) -> None:
    client = CLIENTS[name](shared_node.bootstrap)
    records = some_records(500)
    offsets = client.produce(topic, records, codec=codec)
    assert offsets == list(range(500))
    assert client.consume(topic, 500) == as_seen(records)


@pytest.mark.parametrize(("writer", "reader"), list(product(CLIENTS, CLIENTS)))
def test_what_one_client_writes_the_other_reads(
    shared_node: RunningNode, topic: str, writer: str, reader: str
) -> None:
    records = [Sent(b"v", b"k", (("h", b"1"), ("h", b"2")))]
    CLIENTS[writer](shared_node.bootstrap).produce(topic, records, codec="gzip")
    assert CLIENTS[reader](shared_node.bootstrap).consume(topic, 1) == as_seen(records)


def test_keys_values_and_headers_may_be_absent_or_empty(client: Client, topic: str) -> None:
    records = [
        Sent(b"value"),
        Sent(b"value", b""),
        Sent(b"", b"key"),
        Sent(None, b"tombstone"),
        Sent(b"value", b"key", (("name", b"value"), ("empty", b""), ("name", b"again"))),
    ]
    client.produce(topic, records)
    assert client.consume(topic, len(records)) == as_seen(records)


def test_timestamps_are_kept(client: Client, topic: str) -> None:
    times = [1_600_000_000_000, 1_600_000_000_001, 1_500_000_000_000]
    client.produce(topic, [Sent(b"v", timestamp=time) for time in times])
    assert [seen.timestamp for seen in client.consume(topic, 3)] == times


def test_the_log_gives_timestamps_where_the_topic_says_so(
    client: Client, new_topic: Callable[..., str]
) -> None:
    topic = new_topic(message_timestamp_type="LogAppendTime")
    client.produce(topic, [Sent(b"v", timestamp=1_500_000_000_000) for _ in range(3)])
    seen = client.consume(topic, 3)
    assert all(record.timestamp > 1_600_000_000_000 for record in seen)


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_every_level_of_acknowledgement_writes_the_records(
    client: Client, topic: str, acks: str | int
) -> None:
    records = some_records(50)
    offsets = client.produce(topic, records, acks=acks)
    if acks != 0:
        assert offsets == list(range(50))
    assert client.consume(topic, 50) == as_seen(records)


def test_idempotent_producers_write_every_record_once(client: Client, topic: str) -> None:
    records = some_records(1000)
    client.produce(topic, records, idempotent=True)
    client.produce(topic, records, idempotent=True, codec="gzip")
    assert client.consume(topic, 2000) == as_seen(records + records)


def test_partitions_have_offsets_of_their_own(client: Client, new_topic: Callable[..., str]) -> None:
    topic = new_topic(partitions=3)
    records = [Sent(b"%d" % number, partition=number % 3) for number in range(30)]
    client.produce(topic, records)
    for partition in range(3):
        own = [record for record in records if record.partition == partition]
        assert client.consume(topic, 10, partition=partition) == as_seen(own)


def test_reading_may_begin_in_the_middle_of_a_batch(client: Client, topic: str) -> None:
    records = some_records(200)
    client.produce(topic, records, codec="gzip")
    assert client.consume(topic, 77, offset=123) == as_seen(records[123:], 123)


def test_a_record_may_fill_the_largest_batch(client: Client, topic: str) -> None:
    large = Sent(b"x" * 900_000, b"large")
    client.produce(topic, [large, Sent(b"small")])
    assert client.consume(topic, 2) == as_seen([large, Sent(b"small")])


def test_a_record_beyond_the_limit_of_its_topic_is_refused_and_nothing_written(
    shared_node: RunningNode, new_topic: Callable[..., str]
) -> None:
    topic = new_topic(max_message_bytes="1000")
    client = ConfluentClient(shared_node.bootstrap)
    with pytest.raises(DeliveryFailed) as refusal:
        client.produce(topic, [Sent(b"x" * 2000)])
    assert refusal.value.code == "MSG_SIZE_TOO_LARGE"
    client.produce(topic, [Sent(b"fits")])
    assert client.consume(topic, 1) == [Seen(0, b"fits")]


def test_a_topic_may_allow_more_than_the_default_limit(
    shared_node: RunningNode, new_topic: Callable[..., str]
) -> None:
    from confluent_kafka import Producer

    topic = new_topic(max_message_bytes="8000000")
    value = bytes(range(256)) * 20_000
    producer = Producer({"bootstrap.servers": shared_node.bootstrap, "message.max.bytes": 8_000_000})
    producer.produce(topic, value)
    assert producer.flush(60) == 0
    assert ConfluentClient(shared_node.bootstrap).consume(topic, 1) == [Seen(0, value)]


def test_a_compacted_topic_refuses_records_without_a_key(
    shared_node: RunningNode, new_topic: Callable[..., str]
) -> None:
    topic = new_topic(cleanup_policy="compact")
    with pytest.raises(DeliveryFailed) as refusal:
        ConfluentClient(shared_node.bootstrap).produce(topic, [Sent(b"no key")])
    assert refusal.value.code == "INVALID_RECORD"


@pytest.mark.parametrize("setting", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_a_topic_may_choose_the_codec_itself(
    shared_node: RunningNode, new_topic: Callable[..., str], setting: str
) -> None:
    topic = new_topic(compression_type=setting)
    records = some_records(100)
    ConfluentClient(shared_node.bootstrap).produce(topic, records, codec="gzip")
    for name in ("confluent-kafka", "aiokafka"):
        assert CLIENTS[name](shared_node.bootstrap).consume(topic, 100) == as_seen(records)


def test_topics_are_created_when_they_are_first_written_to(client: Client, topic: str) -> None:
    name = f"auto-{topic}"
    client.produce(name, [Sent(b"first")])
    assert client.consume(name, 1) == [Seen(0, b"first")]
