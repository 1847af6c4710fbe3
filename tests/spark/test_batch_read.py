"""Topics as tables: columns, types, places to start and end, and how the work is shared out."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import IntegerType, StructField, StructType

from headrace.spark.schema import source_schema
from tests.support_node import RunningNode
from tests.support_spark import Record, Topics, numbers, offsets_json, read, rows

TIME_MS = 1_700_000_000_000


def at(milliseconds: int) -> datetime:
    """What Spark makes of a timestamp, in the time zone of this process."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).astimezone().replace(tzinfo=None)


@pytest.fixture
def load(spark: SparkSession, shared_node: RunningNode) -> Any:
    """`load(option=...)` reads a batch from the shared node."""

    def load(**options: str) -> DataFrame:
        return read(spark, shared_node.bootstrap, **options)

    return load


def test_rows_have_the_columns_types_and_nulls_of_sparks_own_source(
    load: Any, topics: Topics, topic: str
) -> None:
    headers = (("trace", b"\x01"), ("trace", None), ("ümlaut", b""))
    topics.produce(
        topic,
        [
            Record(b"\x00\xffvalue", b"key", 0, TIME_MS, headers),
            Record(None, b"", 0, TIME_MS + 1),
            Record(b"", None, 1, TIME_MS + 2, (("h", b"x"),)),
        ],
    )
    plain = load(subscribe=topic)
    assert plain.schema == source_schema(has_headers=False)
    assert rows(plain) == [
        (b"key", b"\x00\xffvalue", topic, 0, 0, at(TIME_MS), 0),
        (b"", None, topic, 0, 1, at(TIME_MS + 1), 0),
        (None, b"", topic, 1, 0, at(TIME_MS + 2), 0),
    ]
    full = load(subscribe=topic, includeHeaders="true")
    assert full.schema == source_schema(has_headers=True)
    assert rows(full, "headers") == [
        ([("trace", b"\x01"), ("trace", None), ("ümlaut", b"")],),
        (None,),
        ([("h", b"x")],),
    ]


def test_a_topic_with_the_brokers_time_says_so(load: Any, topics: Topics) -> None:
    name = topics.create("log-append-time", message_timestamp_type="LogAppendTime")
    topics.values(name, 2)
    assert rows(load(subscribe=name), "timestampType") == [(1,), (1,)]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_records_are_read(load: Any, topics: Topics, codec: str) -> None:
    name = topics.create(f"compressed-{codec}")
    topics.produce(name, [Record(b"%d" % number * 2) for number in range(200)], compression_type=codec)
    assert load(subscribe=name).count() == 200


def test_topics_are_selected_by_name_pattern_or_partition(load: Any, topics: Topics) -> None:
    first, second = topics.create("select-a", 2), topics.create("select-b", 2)
    for number, (name, partition) in enumerate([(first, 0), (first, 1), (second, 0), (second, 1)]):
        topics.values(name, 1, start=number, partition=partition)
    assert numbers(load(subscribe=f"{first},{second}")) == [0, 1, 2, 3]
    assert numbers(load(subscribePattern="select-.*")) == [0, 1, 2, 3]
    assert numbers(load(subscribePattern="select-b")) == [2, 3]
    assert load(subscribePattern="no-such-.*").collect() == []
    assert numbers(load(assign='{"select-a":[1],"select-b":[0]}')) == [1, 2]


def test_a_range_of_offsets_is_read(load: Any, topics: Topics, topic: str) -> None:
    topics.values(topic, 10)
    topics.values(topic, 10, start=100, partition=1)
    start, end = offsets_json(**{topic: {0: 3, 1: -2}}), offsets_json(**{topic: {0: -1, 1: 4}})
    assert numbers(load(subscribe=topic, startingOffsets=start)) == [*range(3, 10), *range(100, 110)]
    assert numbers(load(subscribe=topic, endingOffsets=end)) == [*range(10), *range(100, 104)]
    both = load(subscribe=topic, startingOffsets=start, endingOffsets=end)
    assert numbers(both) == [*range(3, 10), *range(100, 104)]
    nothing = offsets_json(**{topic: {0: 5, 1: 5}})
    assert load(subscribe=topic, startingOffsets=nothing, endingOffsets=nothing).collect() == []


def test_a_range_of_times_is_read(load: Any, topics: Topics, topic: str) -> None:
    topics.produce(topic, [Record(b"%d" % n, partition=0, timestamp=TIME_MS + n) for n in range(10)])
    topics.produce(topic, [Record(b"%d" % n, partition=1, timestamp=TIME_MS + n) for n in range(100, 110)])
    starting, ending = str(TIME_MS + 4), str(TIME_MS + 102)
    assert numbers(load(subscribe=topic, startingTimestamp=starting)) == [*range(4, 10), *range(100, 110)]
    assert numbers(load(subscribe=topic, endingTimestamp=ending)) == [*range(10), 100, 101]
    by_partition = offsets_json(**{topic: {0: TIME_MS + 8, 1: TIME_MS + 109}})
    assert numbers(load(subscribe=topic, startingOffsetsByTimestamp=by_partition)) == [8, 9, 109]
    assert numbers(load(subscribe=topic, endingOffsetsByTimestamp=by_partition)) == [
        *range(8),
        *range(100, 109),
    ]


def test_a_time_after_the_last_record_is_refused_or_stands_for_the_end(
    load: Any, topics: Topics, topic: str
) -> None:
    topics.produce(topic, [Record(b"0", partition=0, timestamp=TIME_MS)])
    late = str(TIME_MS + 1)
    with pytest.raises(
        AnalysisException, match=rf"'startingTimestamp': {topic}-0, {topic}-1: there is no record"
    ):
        load(subscribe=topic, startingTimestamp=late).collect()
    lenient = load(subscribe=topic, startingTimestamp=late, startingOffsetsByTimestampStrategy="latest")
    assert lenient.collect() == []
    assert numbers(load(subscribe=topic, endingTimestamp=late)) == [0]


def test_offsets_have_to_be_given_for_every_partition(load: Any, topics: Topics, topic: str) -> None:
    for given, reason in (({0: 0}, f"{topic}-1 is missing"), ({0: 0, 1: 0, 2: 0}, f"{topic}-2 is named")):
        with pytest.raises(AnalysisException, match=reason):
            load(subscribe=topic, startingOffsets=offsets_json(**{topic: given})).collect()


def test_work_is_shared_out_as_wanted(load: Any, topics: Topics, topic: str) -> None:
    topics.values(topic, 30)
    topics.values(topic, 10, start=100, partition=1)
    expected = [*range(30), *range(100, 110)]
    for options, tasks in (
        ({}, 2),
        ({"minPartitions": "1"}, 2),
        ({"minPartitions": "8"}, 8),
        ({"maxRecordsPerPartition": "10"}, 4),
    ):
        frame = load(subscribe=topic, **options)
        assert frame.rdd.getNumPartitions() == tasks
        assert numbers(frame) == expected


def test_records_come_in_the_order_of_their_offsets_within_a_task(
    load: Any, topics: Topics, topic: str
) -> None:
    topics.values(topic, 5000)
    found = [row.offset for row in load(assign=f'{{"{topic}":[0]}}').select("offset").collect()]
    assert found == list(range(5000))


def test_gaps_and_deleted_records_are_passed_over(load: Any, topics: Topics, topic: str) -> None:
    topics.values(topic, 20)
    topics.delete_records(topic, 8)
    assert numbers(load(subscribe=topic)) == list(range(8, 20))


def test_offsets_that_are_not_there_are_an_error_or_left_out(load: Any, topics: Topics, topic: str) -> None:
    topics.values(topic, 20)
    topics.delete_records(topic, 8)
    gone = {"startingOffsets": offsets_json(**{topic: {0: 2, 1: -2}})}
    beyond = {"endingOffsets": offsets_json(**{topic: {0: 50, 1: -1}})}
    with pytest.raises(
        AnalysisException, match=rf"{topic}-0: offsets 2 to 8 have been deleted.*failOnDataLoss"
    ):
        load(subscribe=topic, **gone).collect()
    with pytest.raises(AnalysisException, match=rf"{topic}-0: offsets up to 50 are wanted.*ends at 20"):
        load(subscribe=topic, **beyond).collect()
    lenient = load(subscribe=topic, failOnDataLoss="false", **gone, **beyond)
    assert numbers(lenient) == list(range(8, 20))


def test_a_start_after_the_end_is_refused(load: Any, topics: Topics, topic: str) -> None:
    topics.produce(topic, [Record(b"%d" % n, timestamp=TIME_MS + n) for n in range(10)])
    topics.produce(topic, [Record(b"0", partition=1, timestamp=TIME_MS)])
    late, early = str(TIME_MS + 5), str(TIME_MS + 2)
    options = {"startingOffsetsByTimestampStrategy": "latest", "failOnDataLoss": "false"}
    with pytest.raises(
        AnalysisException, match=rf"{topic}-0: the query starts at offset 5, after its end, 2"
    ):
        load(subscribe=topic, startingTimestamp=late, endingTimestamp=early, **options).collect()
    beyond = offsets_json(**{topic: {0: 50, 1: 0}})
    with pytest.raises(AnalysisException, match=rf"{topic}-0: the query starts at offset 50"):
        load(subscribe=topic, startingOffsets=beyond).collect()


def test_only_committed_records_are_seen_if_wanted(load: Any, topics: Topics, topic: str) -> None:
    topics.values(topic, 5)
    assert numbers(load(subscribe=topic, kafka__isolation__level="read_committed")) == list(range(5))


def test_an_empty_topic_has_no_rows(load: Any, topic: str) -> None:
    assert load(subscribe=topic).collect() == []


def test_an_unknown_option_is_refused_when_the_frame_is_made(load: Any) -> None:
    with pytest.raises(AnalysisException, match="did you mean 'startingOffsets'"):
        load(subscribe="any", startingOffset="earliest")


def test_a_schema_of_ones_own_is_refused(spark: SparkSession, shared_node: RunningNode, topic: str) -> None:
    options = {"kafka.bootstrap.servers": shared_node.bootstrap, "subscribe": topic}
    own = StructType([StructField("n", IntegerType())])
    with pytest.raises(AnalysisException, match="a topic has the columns struct<key:binary"):
        spark.read.format("headrace").schema(own).options(**options).load().collect()


def test_a_missing_topic_is_named_in_bounded_time(load: Any, topics: Topics) -> None:
    topics.create("orders-of-today")
    with pytest.raises(
        AnalysisException, match=r"no topic 'orders-of-todai' \(did you mean 'orders-of-today'"
    ) as said:
        load(subscribe="orders-of-todai", kafka__topic__wait__ms="100").collect()
    assert "asyncio" not in str(said.value), "the way through the program hides what was meant to be said"


def test_a_missing_partition_is_named(load: Any, topic: str) -> None:
    with pytest.raises(AnalysisException, match=rf"'assign': there is no {topic}-7"):
        load(assign=f'{{"{topic}":[0,7]}}').collect()


def test_brokers_that_cannot_be_reached_are_named_in_bounded_time(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException, match=r"127\.0\.0\.1:1"):
        read(spark, "127.0.0.1:1", subscribe="any", kafka__default__api__timeout__ms="300").collect()
