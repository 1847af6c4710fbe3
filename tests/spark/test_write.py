"""Rows into topics, by batch and by stream."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Everybody calls it so.

from tests.support_node import RunningNode
from tests.support_spark import PATIENCE_SECONDS, Topics, read_stream

HEADERS = "headers array<struct<key string, value binary>>"
Write = Callable[..., None]


@pytest.fixture
def write(shared_node: RunningNode) -> Write:
    """`write(frame, option=...)` appends to the shared node."""

    def write(frame: DataFrame, **options: str) -> None:
        given = {name.replace("__", "."): text for name, text in options.items()}
        given = {"kafka.bootstrap.servers": shared_node.bootstrap} | given
        frame.write.format("headrace").options(**given).mode("append").save()

    return write


def seen(topics: Topics, topic: str, partition: int = 0) -> list[tuple[Any, ...]]:
    return [(record.key, record.value, record.headers) for record in topics.consume(topic, partition)]


def test_rows_become_records(spark: SparkSession, write: Write, topics: Topics, topic: str) -> None:
    rows = [
        (bytearray(b"k"), bytearray(b"\x00\xff"), 0, [("h", bytearray(b"x")), ("h", None)]),
        (None, None, 0, None),
        (bytearray(b""), bytearray(b""), 0, []),
        (None, bytearray(b"there"), 1, None),
    ]
    frame = spark.createDataFrame(rows, f"key binary, value binary, partition int, {HEADERS}").coalesce(1)
    write(frame, topic=topic)
    assert seen(topics, topic) == [
        (b"k", b"\x00\xff", (("h", b"x"), ("h", None))),
        (None, None, ()),
        (b"", b"", ()),
    ]
    assert seen(topics, topic, 1) == [(None, b"there", ())]


def test_text_is_written_as_utf8(spark: SparkSession, write: Write, topics: Topics, topic: str) -> None:
    frame = spark.createDataFrame([("schlüssel", "wert", 0)], "key string, value string, partition int")
    write(frame, topic=topic)
    assert seen(topics, topic) == [("schlüssel".encode(), b"wert", ())]


def test_rows_say_which_topic_they_go_to(spark: SparkSession, write: Write, topics: Topics) -> None:
    first, second = topics.create("sink-a"), topics.create("sink-b")
    frame = spark.createDataFrame([(first, "1"), (second, "2"), (first, "3")], "topic string, value string")
    write(frame.coalesce(1))
    assert [value for _, value, _ in seen(topics, first)] == [b"1", b"3"]
    assert [value for _, value, _ in seen(topics, second)] == [b"2"]
    write(frame.limit(1), topic=second)
    assert [value for _, value, _ in seen(topics, second)] == [b"2", b"1"], (
        "the option goes before the column"
    )


def test_keys_decide_on_partitions_as_with_kafkas_own_clients(
    spark: SparkSession, write: Write, topics: Topics, topic: str
) -> None:
    write(
        spark.range(200).select(F.col("id").cast("string").alias("key"), F.lit("v").alias("value")),
        topic=topic,
    )
    reference = topics.create("by-librdkafka", 2)
    topics.produce_by_key(reference, [b"%d" % number for number in range(200)])
    for partition in (0, 1):
        keys = {key for key, _, _ in seen(topics, topic, partition)}
        assert keys == {key for key, _, _ in seen(topics, reference, partition)}


def test_rows_of_a_task_stay_in_order(spark: SparkSession, write: Write, topics: Topics, topic: str) -> None:
    frame = spark.range(0, 30_000, 1, 1).select(
        F.col("id").cast("string").alias("value"), F.lit(0).alias("partition")
    )
    write(frame, topic=topic, kafka__compression__type="zstd", kafka__batch__size="20000")
    assert [int(value) for _, value, _ in seen(topics, topic)] == list(range(30_000))


def test_no_rows_are_fine(spark: SparkSession, write: Write, topics: Topics, topic: str) -> None:
    write(spark.createDataFrame([], "value string"), topic=topic)
    assert seen(topics, topic) == []


def test_other_columns_are_passed_over(spark: SparkSession, write: Write, topics: Topics, topic: str) -> None:
    frame = spark.createDataFrame([("v", 5, 0)], "value string, n int, partition int")
    write(frame, topic=topic)
    assert seen(topics, topic) == [(None, b"v", ())]


@pytest.mark.parametrize(
    ("columns", "options", "reason"),
    [
        ("key string", {"topic": "t"}, "a column 'value' is needed"),
        ("value string", {}, "neither the option 'topic' nor a column 'topic'"),
        ("value int", {"topic": "t"}, "column 'value' is int; it has to be string or binary"),
        ("value string, key int", {"topic": "t"}, "column 'key' is int"),
        ("value string, topic int", {}, "column 'topic' is int; it has to be string"),
        ("value string, partition bigint", {"topic": "t"}, "column 'partition' is bigint; it has to be int"),
        ("value string, headers map<string,binary>", {"topic": "t"}, "column 'headers' is map"),
        (f"value string, {HEADERS}", {"topic": "t", "includeHeaders": "false"}, "drop it or leave out"),
        ("value string", {"topic": "t", "subscribe": "t"}, "'subscribe': it has no meaning in writing"),
        ("value string", {"topics": "t"}, "did you mean 'topic'"),
        ("value string", {"topic": "t", "kafka__ackz": "all"}, "'kafka.ackz'.*did you mean acks"),
    ],
)
def test_what_cannot_be_written_is_refused_before_anything_is(
    spark: SparkSession, write: Write, columns: str, options: dict[str, str], reason: str
) -> None:
    with pytest.raises(AnalysisException, match=reason):
        write(spark.createDataFrame([], columns), **options)


def test_topics_are_not_overwritten(spark: SparkSession, shared_node: RunningNode, topic: str) -> None:
    options = {"kafka.bootstrap.servers": shared_node.bootstrap, "topic": topic}
    frame = spark.createDataFrame([("v",)], "value string")
    with pytest.raises(AnalysisException, match="can only be appended"):
        frame.write.format("headrace").options(**options).mode("overwrite").save()


def test_a_row_without_a_topic_fails_the_query(spark: SparkSession, write: Write, topics: Topics) -> None:
    known = topics.create("sink-null")
    frame = spark.createDataFrame([(known, "1"), (None, "2")], "topic string, value string").coalesce(1)
    with pytest.raises(PythonException, match="topic is null in row 1"):
        write(frame)


def test_a_refusal_names_topic_partition_and_cause(spark: SparkSession, write: Write, topics: Topics) -> None:
    small = topics.create("sink-small", max_message_bytes="1000")
    frame = spark.createDataFrame([("x" * 2000,)], "value string")
    with pytest.raises(PythonException, match=r"sink-small-0.*MESSAGE_TOO_LARGE"):
        write(frame, topic=small)


def test_a_partition_that_is_not_there_is_named(spark: SparkSession, write: Write, topic: str) -> None:
    frame = spark.createDataFrame([("v", 9)], "value string, partition int")
    with pytest.raises(PythonException, match=rf"partition 9 of topic {topic}, which has 2"):
        write(frame, topic=topic, kafka__topic__wait__ms="200")


def test_brokers_that_cannot_be_reached_fail_a_write_in_bounded_time(
    spark: SparkSession, write: Write
) -> None:
    frame = spark.createDataFrame([("v",)], "value string")
    with pytest.raises(PythonException, match=r"127\.0\.0\.1:1"):
        write(
            frame,
            topic="any",
            kafka__bootstrap__servers="127.0.0.1:1",
            kafka__default__api__timeout__ms="300",
        )


def test_a_stream_is_written_batch_by_batch(
    spark: SparkSession, shared_node: RunningNode, topics: Topics, topic: str, tmp_path: Path
) -> None:
    target = topics.create("stream-sink")
    source = read_stream(
        spark, shared_node.bootstrap, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="4"
    )
    for start in (0, 10):
        topics.values(topic, 10, start=start)
        query = (
            source.select("key", "value")
            .writeStream.format("headrace")
            .option("kafka.bootstrap.servers", shared_node.bootstrap)
            .option("topic", target)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(PATIENCE_SECONDS)
    assert [int(value) for _, value, _ in seen(topics, target)] == list(range(20))
