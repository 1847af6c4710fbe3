"""How long single records take: from a producer to a consumer, and to their acknowledgement."""

import itertools
import multiprocessing
import statistics
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from bench.node_brokers import Broker
from bench.node_loads import NotDelivered, produce
from bench.node_wire import (
    Refused,
    WireClient,
    check_produced,
    create_topic,
    delete_topic,
    produce_frame,
)
from headrace.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

MESSAGES_PER_SECOND = 1_000
WARM_UP_SECONDS = 1.0
TIMEOUT_S = 60.0
COMPACTED = "compacted"
COMPACTED_VALUE_BYTES = 400
COMPACTED_KEYS = 20_000
CHECKPOINT = "cleaner-offset-checkpoint"
_TOPIC_RESOURCE = 2
_SET = 0
_LOOK_EVERY = 16
_numbers = itertools.count()


class Percentiles(NamedTuple):
    """Half of all are below the one, all but a hundredth below the other; in seconds."""

    p50: float
    p99: float


def percentiles(seconds: list[float]) -> Percentiles:
    """Those of at least a hundred samples."""
    cuts = statistics.quantiles(seconds, n=100, method="inclusive")
    return Percentiles(cuts[49], cuts[98])


class Pace:
    """Lets a loop go on at fixed times; one that is late goes on at once."""

    def __init__(self, per_second: int) -> None:
        self._interval = 1 / per_second
        self._next = time.perf_counter()

    def wait(self) -> None:
        self._next += self._interval
        left = self._next - time.perf_counter()
        if left > 0:
            time.sleep(left)


def end_to_end(broker: Broker, seconds: float) -> Percentiles:
    """From a producer's call to a consumer's hands in another process, both confluent-kafka."""
    topic = f"latency-{next(_numbers)}"
    count = int((seconds + WARM_UP_SECONDS) * MESSAGES_PER_SECOND)
    with WireClient(broker.host, broker.port) as client:
        create_topic(client, topic)
        context = multiprocessing.get_context("spawn")
        ours, far_end = context.Pipe()
        consumer = context.Process(target=_consume, args=(far_end, broker.address, topic, count), daemon=True)
        consumer.start()
        ours.recv()
        _produce_stamps(broker, topic, count)
        if not ours.poll(TIMEOUT_S):
            raise NotDelivered(f"the consumer of {topic} did not get {count} messages")
        seen: list[float] = ours.recv()
        consumer.join()
        delete_topic(client, topic)
    return percentiles(seen[int(WARM_UP_SECONDS * MESSAGES_PER_SECOND) :])


def _produce_stamps(broker: Broker, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": broker.address, "acks": "all", "linger.ms": 0})
    pace = Pace(MESSAGES_PER_SECOND)
    for _ in range(count):
        pace.wait()
        producer.produce(topic, time.monotonic_ns().to_bytes(8, "big"))
        producer.poll(0)
    if producer.flush(TIMEOUT_S):
        raise NotDelivered(f"not all messages to {topic} were delivered")


def _consume(control: Connection, address: str, topic: str, count: int) -> None:
    """The consumer's process. The stamps are of a clock that all processes of a machine share."""
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "not-used", "enable.auto.commit": False, "log_level": 3}
    )
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    consumer.poll(0.5)
    control.send("assigned")
    seen: list[float] = []
    while len(seen) < count:
        message = consumer.poll(1.0)
        value = None if message is None or message.error() else message.value()
        if value is not None:
            seen.append((time.monotonic_ns() - int.from_bytes(value, "big")) / 1e9)
    control.send(seen)
    consumer.close()


class Compaction(NamedTuple):
    """Latencies of writes to one topic while nothing else happens, and while another one is compacted."""

    idle: Percentiles
    busy: Percentiles
    seconds: float


def during_compaction(broker: Broker, seconds: float) -> Compaction:
    """Writes at a steady pace, before and while a topic of some size is compacted."""
    topic = f"steady-{next(_numbers)}"
    with WireClient(broker.host, broker.port) as client:
        create_topic(client, topic)
        create_topic(client, COMPACTED, segment_bytes=str(32 * 1024 * 1024))
        _fill(broker, 2 * seconds)
        frame = produce_frame(topic, bytes(100))
        idle = _latencies(client, frame, _times(int(seconds * MESSAGES_PER_SECOND)))
        _alter(client, COMPACTED, {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"})
        directory = broker.data_dir / f"{COMPACTED}-0"
        _latencies(client, frame, lambda: not _is_cleaning(directory))
        started = time.perf_counter()
        busy = _latencies(client, frame, lambda: not _is_cleaned(broker.data_dir))
        elapsed = time.perf_counter() - started
        delete_topic(client, topic)
        delete_topic(client, COMPACTED)
    return Compaction(percentiles(idle), percentiles(busy), elapsed)


def _fill(broker: Broker, seconds: float) -> None:
    """Records whose keys come again and again."""
    value = bytes(COMPACTED_VALUE_BYTES)
    messages = [{"key": b"key-%d" % number, "value": value} for number in range(COMPACTED_KEYS)]
    produce(broker, COMPACTED, messages, seconds)


def _latencies(client: WireClient, frame: bytes, goes_on: Callable[[], bool]) -> list[float]:
    """How long each write took until it was acknowledged, as long as `goes_on` says so now and then."""
    pace = Pace(MESSAGES_PER_SECOND)
    found: list[float] = []
    while len(found) % _LOOK_EVERY or goes_on():
        pace.wait()
        sent = time.perf_counter()
        client.socket.sendall(frame)
        reply = client.frame()
        found.append(time.perf_counter() - sent)
        check_produced(reply)
    return found


def _times(count: int) -> Callable[[], bool]:
    looks = itertools.count()
    return lambda: next(looks) * _LOOK_EVERY < count


def _is_cleaning(directory: Path) -> bool:
    return any(name.suffix in {".cleaned", ".swap"} for name in directory.iterdir())


def _is_cleaned(data_dir: Path) -> bool:
    checkpoint = data_dir / CHECKPOINT
    return checkpoint.exists() and any(
        line.startswith(f"{COMPACTED} ") for line in checkpoint.read_text().splitlines()
    )


def _alter(client: WireClient, topic: str, configs: dict[str, str]) -> None:
    wanted = [AlterableConfig(name=name, config_operation=_SET, value=text) for name, text in configs.items()]
    resource = AlterConfigsResource(resource_type=_TOPIC_RESOURCE, resource_name=topic, configs=wanted)
    reply = client.call(IncrementalAlterConfigsRequest(resources=[resource]), IncrementalAlterConfigsResponse)
    if reply.responses[0].error_code:
        raise Refused(f"altering {topic}", reply.responses[0].error_code)
