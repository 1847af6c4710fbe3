"""Our source and sink in Spark beside Spark's own: same node, same data, same session, in turns.

Rates of AvailableNow are those of the query's batches. What it takes to begin and end a query, a process for
Python among it, has lines of its own.
"""

import os
import tempfile
from pathlib import Path
from typing import Any

from bench.harness import Row, spell_time
from compat.kafka_libs import Unavailable
from compat.spark_peer import run_job, spark_peer
from tests.support_node import RunningNode
from tests.support_spark import Topics

#: Rows to read, by the size of their values.
READS = {100: 2_000_000, 1000: 400_000}
WRITES = {100: 500_000, 1000: 200_000}
SMALL = "a-few-rows"
SOURCE_TARGET = 2.0
SINK_TARGET = 1.0


def run() -> list[Row]:
    try:
        spark_peer()
    except Unavailable as reason:
        return [Row(f"nothing measured: {reason}", "", "")]
    with tempfile.TemporaryDirectory() as scratch:
        node = RunningNode(Path(scratch) / "node").start()
        try:
            _fill(node.bootstrap)
            return _table(_measure(node.bootstrap))
        finally:
            node.kill()


def _measure(bootstrap: str) -> dict[str, Any]:
    topics = [_topic(size) for size in READS]
    writes = {str(size): count for size, count in WRITES.items()}
    given = {"bootstrap": bootstrap, "topics": topics, "small topic": SMALL, "writes": writes}
    found: dict[str, Any] = run_job("bench.spark_job", given)
    return found


def _topic(size: int) -> str:
    return f"rows-of-{size}"


def _fill(bootstrap: str) -> None:
    from confluent_kafka import Producer

    topics = Topics(bootstrap)
    topics.values(topics.create(SMALL), 10)
    for size in WRITES:
        for name in ("headrace", "kafka"):
            topics.create(f"to-{name}-{size}")
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 20,
            "queue.buffering.max.messages": 100_000,
            "log_level": 0,
        }
    )
    for size, count in READS.items():
        topic, value = topics.create(_topic(size)), os.urandom(size)
        for _ in range(count):
            while True:
                try:
                    producer.produce(topic, value)
                    break
                except BufferError:
                    producer.poll(0.05)
        producer.flush()


def _table(found: dict[str, Any]) -> list[Row]:
    rows = []
    for size, count in READS.items():
        for kind, what in (("batch", "source, batch"), ("stream", "source, AvailableNow")):
            rows.append(_rate(f"{what}, {size} B", count, found[f"{kind} {_topic(size)}"], SOURCE_TARGET))
    for size, count in WRITES.items():
        rows.append(_rate(f"sink, {size} B", count, found[f"write {size}"], SINK_TARGET))
    rows.append(_time("a batch query of one row", found["first row"]))
    rows.append(_time("an AvailableNow query of ten rows", found["whole stream"]))
    rows.append(Row("largest Python worker", f"{found['worker bytes'] / 1e6:.0f} MB", "(in the JVM)"))
    return rows


def _time(name: str, seconds: dict[str, float]) -> Row:
    ours, theirs = seconds["headrace"], seconds["kafka"]
    return Row(name, spell_time(ours), spell_time(theirs), ours / theirs, higher_is_better=False)


def _rate(name: str, count: int, seconds: dict[str, float], target: float) -> Row:
    ours, theirs = count / seconds["headrace"], count / seconds["kafka"]
    return Row(name, f"{ours / 1e3:.0f} k rows/s", f"{theirs / 1e3:.0f} k rows/s", ours / theirs, target)
