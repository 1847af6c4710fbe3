"""Topics as streams: triggers, limits, restarts, and what changes while a query runs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from tests.support_node import RunningNode
from tests.support_spark import (
    PATIENCE_SECONDS,
    Topics,
    batch_sizes,
    collected,
    offsets_json,
    read_stream,
    run_available,
)

Stream = Callable[..., DataFrame]


@pytest.fixture
def stream(spark: SparkSession, shared_node: RunningNode) -> Stream:
    """`stream(option=...)` reads a stream of the shared node, from the earliest offsets on."""

    def stream(**options: str) -> DataFrame:
        places = ("startingOffsets", "startingTimestamp", "startingOffsetsByTimestamp")
        if not any(place in options for place in places):
            options["startingOffsets"] = "earliest"
        return read_stream(spark, shared_node.bootstrap, **options)

    return stream


class Running:
    """A query that goes on until it is stopped, and keeps what it has seen by batch."""

    def __init__(self, frame: DataFrame, checkpoint: Path, **trigger: Any) -> None:
        self.batches: list[list[int]] = []
        writer = frame.writeStream.foreachBatch(self._take).option("checkpointLocation", str(checkpoint))
        self.query = (writer.trigger(**trigger) if trigger else writer).start()

    def _take(self, frame: DataFrame, _: int) -> None:
        self.batches.append(sorted(int(row.value) for row in frame.select("value").collect()))

    @property
    def seen(self) -> list[int]:
        return sorted(number for batch in self.batches for number in batch)

    def settle(self) -> list[int]:
        """What was seen once everything that is there now was."""
        self.query.processAllAvailable()
        return self.seen

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *_: object) -> None:
        self.query.stop()


def test_what_is_there_now_is_read_in_one_batch(
    stream: Stream, topics: Topics, topic: str, tmp_path: Path
) -> None:
    topics.values(topic, 10)
    topics.values(topic, 10, start=10, partition=1)
    query = run_available(stream(subscribe=topic), tmp_path, "out")
    assert batch_sizes(query) == [20]
    assert collected(tmp_path, "out") == list(range(20))


def test_a_limit_makes_several_batches_of_it(
    stream: Stream, topics: Topics, topic: str, tmp_path: Path
) -> None:
    topics.values(topic, 20)
    topics.values(topic, 10, start=20, partition=1)
    query = run_available(stream(subscribe=topic, maxOffsetsPerTrigger="12"), tmp_path, "out")
    assert batch_sizes(query) == [12, 12, 6]
    assert collected(tmp_path, "out") == list(range(30))


def test_too_few_offsets_do_not_keep_what_is_there_now_from_being_read(
    stream: Stream, topics: Topics, topic: str, tmp_path: Path
) -> None:
    topics.values(topic, 25)
    options = {"minOffsetsPerTrigger": "10", "maxOffsetsPerTrigger": "10"}
    query = run_available(stream(subscribe=topic, **options), tmp_path, "out")
    assert batch_sizes(query) == [10, 10, 5]


def test_a_query_goes_on_where_it_was(stream: Stream, topics: Topics, topic: str, tmp_path: Path) -> None:
    topics.values(topic, 10)
    run_available(stream(subscribe=topic), tmp_path, "out")
    topics.values(topic, 5, start=10)
    topics.values(topic, 5, start=15, partition=1)
    query = run_available(stream(subscribe=topic), tmp_path, "out")
    assert batch_sizes(query) == [10]
    assert collected(tmp_path, "out") == list(range(20))


def test_a_new_query_begins_where_it_is_told_to(
    stream: Stream, topics: Topics, topic: str, tmp_path: Path
) -> None:
    topics.values(topic, 10)
    for name, options, expected in (
        ("offsets", {"startingOffsets": offsets_json(**{topic: {0: 7, 1: -2}})}, [7, 8, 9]),
        ("latest", {"startingOffsets": "latest"}, []),
        ("time", {"startingTimestamp": "1"}, [*range(10)]),
    ):
        options |= {"startingOffsetsByTimestampStrategy": "latest"}
        query = run_available(stream(subscribe=topic, **options), tmp_path, name)
        assert sum(batch_sizes(query)) == len(expected)


def test_records_that_come_while_a_query_runs_are_read(
    stream: Stream, topics: Topics, topic: str, tmp_path: Path
) -> None:
    with Running(stream(subscribe=topic), tmp_path) as running:
        assert running.settle() == []
        topics.values(topic, 3)
        assert running.settle() == [0, 1, 2]
        topics.values(topic, 2, start=3, partition=1)
        assert running.settle() == [0, 1, 2, 3, 4]


def test_partitions_and_topics_that_come_while_a_query_runs_are_read(
    stream: Stream, topics: Topics, tmp_path: Path
) -> None:
    first = topics.create("growing-a", 1)
    with Running(stream(subscribePattern="growing-.*"), tmp_path) as running:
        topics.values(first, 2)
        assert running.settle() == [0, 1]
        topics.grow(first, 2)
        topics.values(first, 2, start=2, partition=1)
        topics.values(topics.create("growing-b", 1), 2, start=4)
        while len(running.settle()) < 6:
            assert running.query.exception() is None
        assert running.seen == [0, 1, 2, 3, 4, 5]


def test_a_small_batch_waits_for_more(stream: Stream, topics: Topics, topic: str, tmp_path: Path) -> None:
    topics.values(topic, 1)
    frame = stream(subscribe=topic, minOffsetsPerTrigger="5", maxTriggerDelay="1h")
    with Running(frame, tmp_path) as running:
        assert running.settle() == [0]
        topics.values(topic, 3, start=1)
        assert running.settle() == [0], "three are too few"
        topics.values(topic, 3, start=4)
        assert running.settle() == [0, 1, 2, 3, 4, 5, 6]
        assert running.batches == [[0], [1, 2, 3, 4, 5, 6]]


def test_nothing_is_lost_or_read_twice_over_restarts_of_query_and_broker(
    spark: SparkSession, start_node: Callable[..., RunningNode], tmp_path: Path
) -> None:
    node = start_node()
    topics = Topics(node.bootstrap)
    topics.create("restarted", 2)
    for round_number in range(3):
        topics.values("restarted", 50, start=100 * round_number)
        topics.values("restarted", 50, start=100 * round_number + 50, partition=1)
        frame = read_stream(
            spark,
            node.bootstrap,
            subscribe="restarted",
            startingOffsets="earliest",
            maxOffsetsPerTrigger="30",
        )
        run_available(frame, tmp_path, "out")
        node.restart(hard=round_number == 1)
    assert collected(tmp_path, "out") == list(range(300))


def test_a_running_query_outlives_a_restart_of_the_broker(
    spark: SparkSession, start_node: Callable[..., RunningNode], tmp_path: Path
) -> None:
    node = start_node()
    Topics(node.bootstrap).create("outlived")
    frame = read_stream(spark, node.bootstrap, subscribe="outlived", startingOffsets="earliest")
    with Running(frame, tmp_path) as running:
        Topics(node.bootstrap).values("outlived", 5)
        assert running.settle() == list(range(5))
        node.restart()
        Topics(node.bootstrap).values("outlived", 5, start=5)
        assert running.settle() == list(range(10))
        assert running.query.exception() is None


def test_a_batch_that_was_planned_before_a_failure_is_read_as_it_was_planned(
    stream: Stream, topics: Topics, topic: str, tmp_path: Path
) -> None:
    topics.values(topic, 4)
    seen: list[list[int]] = []

    def run(frame: DataFrame, fails: bool) -> None:
        def take(rows: DataFrame, _: int) -> None:
            seen.append(sorted(int(row.value) for row in rows.select("value").collect()))
            if fails:
                raise RuntimeError("the sink has failed")

        query = (
            frame.writeStream.foreachBatch(take)
            .option("checkpointLocation", str(tmp_path))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(PATIENCE_SECONDS)

    with pytest.raises(StreamingQueryException, match="the sink has failed"):
        run(stream(subscribe=topic), fails=True)
    topics.values(topic, 4, start=4)
    run(stream(subscribe=topic), fails=False)
    assert seen == [[0, 1, 2, 3], [0, 1, 2, 3], [4, 5, 6, 7]]


def fail(frame: DataFrame, directory: Path, name: str = "out") -> str:
    """Run a query that fails; what it says."""
    with pytest.raises(StreamingQueryException) as said:
        run_available(frame, directory, name)
    return str(said.value)


def test_a_recreated_topic_is_noticed_when_a_query_goes_on(
    stream: Stream, topics: Topics, tmp_path: Path
) -> None:
    topics.values(topics.create("recreated"), 3)
    run_available(stream(subscribe="recreated"), tmp_path, "out")
    topics.delete("recreated")
    topics.values(topics.create("recreated"), 9, start=10)
    assert "topic 'recreated' with id" in fail(stream(subscribe="recreated"), tmp_path)
    run_available(stream(subscribe="recreated", failOnDataLoss="false"), tmp_path, "out")
    assert collected(tmp_path, "out") == [0, 1, 2, *range(10, 19)]


def test_a_recreated_topic_is_noticed_while_a_query_runs(
    stream: Stream, topics: Topics, tmp_path: Path
) -> None:
    topics.values(topics.create("recreated-live"), 3)
    with Running(stream(subscribe="recreated-live"), tmp_path) as running:
        assert running.settle() == [0, 1, 2]
        topics.delete("recreated-live")
        topics.values(topics.create("recreated-live"), 9, start=10)
        with pytest.raises(StreamingQueryException, match=r"created again|no topic 'recreated-live'"):
            running.query.awaitTermination(PATIENCE_SECONDS)
        assert running.seen == [0, 1, 2], "rows of the new topic are not those of the old one"


def test_records_that_were_deleted_before_they_were_read_are_an_error_or_left_out(
    stream: Stream, topics: Topics, topic: str, tmp_path: Path
) -> None:
    topics.values(topic, 3)
    run_available(stream(subscribe=topic), tmp_path, "out")
    topics.values(topic, 7, start=3)
    topics.delete_records(topic, 6)
    assert f"{topic}-0: offsets 3 to 6 have been deleted" in fail(stream(subscribe=topic), tmp_path)
    run_available(stream(subscribe=topic, failOnDataLoss="false"), tmp_path, "out")
    assert collected(tmp_path, "out") == [0, 1, 2, 6, 7, 8, 9]


def test_a_start_beyond_the_end_is_an_error(
    stream: Stream, topics: Topics, topic: str, tmp_path: Path
) -> None:
    topics.values(topic, 3)
    start = offsets_json(**{topic: {0: 50, 1: 0}})
    said = fail(stream(subscribe=topic, startingOffsets=start, fetchOffset__numRetries="1"), tmp_path)
    assert f"{topic}-0: the end has gone back from offset 50 to 3" in said


def test_an_option_that_a_stream_cannot_honour_is_refused(stream: Stream, topic: str, tmp_path: Path) -> None:
    assert "a stream has no end" in fail(stream(subscribe=topic, endingOffsets="latest"), tmp_path)


def test_a_missing_topic_and_absent_brokers_end_a_query_in_bounded_time(
    spark: SparkSession, stream: Stream, tmp_path: Path
) -> None:
    said = fail(stream(subscribe="not-there", kafka__topic__wait__ms="100"), tmp_path, "missing")
    assert "the cluster has no topic 'not-there'" in said
    absent = read_stream(spark, "127.0.0.1:1", subscribe="x", kafka__default__api__timeout__ms="300")
    assert "127.0.0.1:1" in fail(absent, tmp_path, "absent")


def test_progress_is_told_in_the_querys_own_terms(
    stream: Stream, topics: Topics, topic: str, tmp_path: Path
) -> None:
    topics.values(topic, 10)
    query = run_available(stream(subscribe=topic, maxOffsetsPerTrigger="6"), tmp_path, "out")
    last = query.recentProgress[1]["sources"][0]
    start, end, latest = (
        json.loads(last[name])[topic] for name in ("startOffset", "endOffset", "latestOffset")
    )
    assert (start["0"], end["0"], latest["0"]) == (6, 10, 10)
    assert start["id"] == end["id"] == latest["id"]
