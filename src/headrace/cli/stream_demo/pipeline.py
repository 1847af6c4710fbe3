"""The aggregation: mean temperatures by station and window, on a Spark of this process."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from headrace.cli.stream_demo.events import TOPIC

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

WINDOW_SECONDS: Final = 10
TRIGGER: Final = "1 second"
ROWS_SHOWN: Final = 12


@dataclass(slots=True, frozen=True)
class WindowRow:
    """One result: a station in a window of time."""

    start: str
    station: str
    readings: int
    celsius: float


@contextmanager
def local_spark(log: str) -> "Iterator[SparkSession]":
    """A Spark on this machine's cores, whose own messages go to a file. It is stopped at the end."""
    from pyspark.sql import SparkSession

    import headrace.spark

    # Spark's workers are to be the Python that runs here, which has what they need.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    with _messages_to(log):
        spark = (
            SparkSession.builder.master("local[2]")
            .appName("headrace-demo")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.streaming.ui.enabled", "false")
            .getOrCreate()
        )
    try:
        headrace.spark.register(spark)
        yield spark
    finally:
        spark.stop()


def start_query(
    spark: "SparkSession", address: str, checkpoint: str, on_windows: Callable[[list[WindowRow]], None]
) -> "StreamingQuery":
    """Aggregate the readings, and hand over the latest windows after every micro-batch."""
    from pyspark.sql import functions as f

    readings = (
        spark.readStream.format("headrace")
        .option("kafka.bootstrap.servers", address)
        .option("subscribe", TOPIC)
        .option("startingOffsets", "earliest")
        .load()
        .select("timestamp", f.from_json(f.col("value").cast("string"), _schema()).alias("reading"))
    )
    windows = (
        readings.withWatermark("timestamp", f"{WINDOW_SECONDS} seconds")
        .groupBy(f.window("timestamp", f"{WINDOW_SECONDS} seconds"), "reading.station")
        .agg(f.count("*").alias("readings"), f.avg("reading.celsius").alias("celsius"))
    )

    def show(frame: "DataFrame", batch_id: int) -> None:
        latest = frame.orderBy(f.desc("window.start"), "station").limit(ROWS_SHOWN).collect()
        on_windows([_row(row) for row in latest])

    return (
        windows.writeStream.outputMode("update")
        .foreachBatch(show)
        .option("checkpointLocation", checkpoint)
        .trigger(processingTime=TRIGGER)
        .start()
    )


def _schema() -> str:
    return "station string, celsius double"


def _row(row: Any) -> WindowRow:
    return WindowRow(f"{row['window']['start']:%H:%M:%S}", row["station"], row["readings"], row["celsius"])


@contextmanager
def _messages_to(log: str) -> Iterator[None]:
    """Processes that are started here write into a file instead of the terminal, as long as they live."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        yield
    finally:
        os.dup2(kept[0], 1)
        os.dup2(kept[1], 2)
        for number in (*kept, descriptor):
            os.close(number)
