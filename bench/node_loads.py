"""What the brokers are put under: many records, many small requests, many bytes to read."""

import itertools
import time
from contextlib import ExitStack
from typing import NamedTuple

from confluent_kafka import Producer

from bench.node_brokers import Broker, processor_seconds
from bench.node_wire import (
    FetchLoop,
    WireClient,
    check_produced,
    create_topic,
    delete_topic,
    end_offset,
    produce_frame,
)

MESSAGES_PER_CALL = 10_000
QUEUED_BYTES_MAX = 128 * 1024 * 1024
FLUSH_TIMEOUT_S = 120.0
FETCH_BYTES = 1024 * 1024
_numbers = itertools.count()


class NotDelivered(Exception):
    """The client library could not hand over all of its messages."""


class Produced(NamedTuple):
    """How fast messages were stored, and what processor time the broker took for each."""

    per_second: float
    seconds_each: float


def produce(
    broker: Broker, topic: str, messages: list[dict[str, bytes]], seconds: float
) -> tuple[int, float]:
    """Produce over and over through confluent-kafka; how many messages were stored in how many seconds."""
    producer = Producer(
        {"bootstrap.servers": broker.address, "acks": "all", "queue.buffering.max.messages": 0}
    )
    queued_max = QUEUED_BYTES_MAX // len(messages[0]["value"])
    count = 0
    started = time.perf_counter()
    while time.perf_counter() - started < seconds:
        count += producer.produce_batch(topic, messages, partition=0)
        producer.poll(0)
        while len(producer) > queued_max:
            producer.poll(0.005)
    left = producer.flush(FLUSH_TIMEOUT_S)
    elapsed = time.perf_counter() - started
    with WireClient(broker.host, broker.port) as client:
        stored = end_offset(client, topic)
    if left or stored != count:
        raise NotDelivered(f"{left} of {count} messages to {topic} are left; it has {stored}")
    return count, elapsed


def produced(broker: Broker, size: int, seconds: float) -> Produced:
    """Messages of `size` bytes each, as many as go, to a topic of their own."""
    topic = f"produce-{next(_numbers)}"
    with WireClient(broker.host, broker.port) as client:
        create_topic(client, topic)
        before = processor_seconds(broker.pid)
        count, elapsed = produce(broker, topic, [{"value": bytes(size)}] * MESSAGES_PER_CALL, seconds)
        used = processor_seconds(broker.pid) - before
        delete_topic(client, topic)
    return Produced(count / elapsed, used / count)


def requests_per_second(broker: Broker, producers: int, seconds: float) -> float:
    """Requests a second with one record each; every producer waits for the reply before it sends again."""
    topic = f"requests-{next(_numbers)}"
    with ExitStack() as stack:
        clients = [stack.enter_context(WireClient(broker.host, broker.port)) for _ in range(producers)]
        create_topic(clients[0], topic)
        frame = produce_frame(topic, bytes(100))
        count = 0
        started = time.perf_counter()
        while time.perf_counter() - started < seconds:
            for client in clients:
                client.socket.sendall(frame)
            replies = [client.frame() for client in clients]
            count += producers
        elapsed = time.perf_counter() - started
        for reply in replies:
            check_produced(reply)
        delete_topic(clients[0], topic)
    return count / elapsed


class Readable:
    """A topic with something to read in it."""

    name = "readable"

    def __init__(self, broker: Broker, size: int, seconds: float) -> None:
        self._broker = broker
        with WireClient(broker.host, broker.port) as client:
            create_topic(client, self.name)
        produce(broker, self.name, [{"value": bytes(size)}] * MESSAGES_PER_CALL, seconds)

    def bytes_per_second(self, seconds: float) -> float:
        """Bytes of records a second that one connection can fetch, over and over from the start."""
        with WireClient(self._broker.host, self._broker.port) as client:
            fetches = FetchLoop(client, self.name, FETCH_BYTES)
            size = 0
            started = time.perf_counter()
            while time.perf_counter() - started < seconds:
                size += fetches.next_bytes()
            return size / (time.perf_counter() - started)
