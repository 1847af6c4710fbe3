"""What is measured inside of Spark: runs with PySpark of the connector's version, both formats in turns.

`python -m bench.spark_job ARGUMENTS.json RESULT.json`; seconds come back, by what was done and by format.
"""

import json
import os
import re
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Everybody calls it so.

import headrace.spark
from tests.support_spark import start_spark

FORMATS = ("headrace", "kafka")
ROUNDS = 3
PATIENCE_SECONDS = 300


class Measurement:
    """One session, one cluster."""

    def __init__(self, spark: SparkSession, bootstrap: str, scratch: Path) -> None:
        self._spark = spark
        self._servers = {"kafka.bootstrap.servers": bootstrap}
        self._scratch = scratch
        self._checkpoints = 0

    def batch(self, topic: str, name: str) -> None:
        """Read all there is."""
        self._read(name, topic).write.format("noop").mode("overwrite").save()

    def first_row(self, topic: str, name: str) -> None:
        """A query of one row, from its options to the result."""
        assert len(self._read(name, topic, endingOffsets=json.dumps({topic: {"0": 1}})).collect()) == 1

    def stream(self, topic: str, name: str) -> float:
        """Read all there is as a stream that ends there; the seconds that its batches took."""
        self._checkpoints += 1
        frame = self._spark.readStream.format(name).options(**self._servers)
        query = (
            frame.options(subscribe=topic, startingOffsets="earliest")
            .load()
            .writeStream.format("noop")
            .option("checkpointLocation", str(self._scratch / f"checkpoint-{self._checkpoints}"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(PATIENCE_SECONDS)
        return sum(float(each["durationMs"]["triggerExecution"]) for each in query.recentProgress) / 1000

    def whole_stream(self, topic: str, name: str) -> None:
        """A stream of a few rows, from its options until it has ended."""
        self.stream(topic, name)

    def write(self, frame: DataFrame, size: str, name: str) -> None:
        """Write rows that Spark holds in memory."""
        options = self._servers | {"topic": f"to-{name}-{size}"}
        frame.write.format(name).options(**options).mode("append").save()

    def rows(self, count: int, size: int) -> DataFrame:
        """Rows to write, held in memory."""
        value = F.lpad(F.col("id").cast("string"), size, "x").cast("binary").alias("value")
        frame = self._spark.range(0, count, 1, 1).select(value).cache()
        assert frame.count() == count
        return frame

    def _read(self, name: str, topic: str, **options: str) -> DataFrame:
        frame = self._spark.read.format(name).options(**self._servers, subscribe=topic, **options)
        return frame.load()


def alternate(action: Callable[[str], float | None], rounds: int = ROUNDS) -> dict[str, float]:
    """The best time of each format, in turns; the first turn warms up and does not count.

    An action that knows better how long it took returns it."""
    best = dict.fromkeys(FORMATS, float("inf"))
    for number in range(rounds + 1):
        for name in FORMATS:
            started = time.perf_counter()
            told = action(name)
            elapsed = time.perf_counter() - started if told is None else told
            if number:
                best[name] = min(best[name], elapsed)
    return best


def worker_peak_bytes() -> int:
    """The most memory that a Python worker of this session has ever had."""
    peaks = [0]
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            command = (status.parent / "cmdline").read_bytes()
            if b"pyspark.daemon" in command and _is_descendant(status.parent.name):
                found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
                peaks.append(int(found[1]) * 1024 if found else 0)
        except OSError:
            # It has ended meanwhile.
            continue
    return max(peaks)


def _is_descendant(pid: str) -> bool:
    while pid not in ("0", "1"):
        if int(pid) == os.getpid():
            return True
        pid = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
    return False


def measure(spark: SparkSession, given: dict[str, Any]) -> dict[str, Any]:
    """All of it."""
    found: dict[str, Any] = {}
    measurement = Measurement(spark, given["bootstrap"], Path(given["scratch"]))
    for topic in given["topics"]:
        found[f"batch {topic}"] = alternate(partial(measurement.batch, topic))
        found[f"stream {topic}"] = alternate(partial(measurement.stream, topic), 2)
    found["first row"] = alternate(partial(measurement.first_row, given["topics"][0]))
    found["whole stream"] = alternate(partial(measurement.whole_stream, given["small topic"]), 2)
    found["worker bytes"] = worker_peak_bytes()
    for size, count in given["writes"].items():
        frame = measurement.rows(count, int(size))
        found[f"write {size}"] = alternate(partial(measurement.write, frame, size), 2)
        frame.unpersist()
    return found


def main() -> None:
    given = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    settings = {"spark.jars": given["jars"], "spark.driver.memory": "2g"}
    spark = start_spark(Path(given["scratch"]) / "spark", settings)
    headrace.spark.register(spark)
    Path(sys.argv[2]).write_text(json.dumps(measure(spark, given)), encoding="utf-8")
    spark.stop()


if __name__ == "__main__":
    main()
