"""Which options there are, where they may be given, and what is said of those that may not."""

import pickle
from typing import Any

import pytest

from headrace.spark.errors import OptionRefused
from headrace.spark.option_names import OPTIONS, Use
from headrace.spark.options import SourceOptions, client_config, read_sink_options, read_source_options
from headrace.spark.places import EARLIEST, LATEST, AtOffsets, AtTime, AtTimes, Everywhere, WithoutMatch
from headrace.spark.selection import Assign, Subscribe, SubscribePattern
from headrace.types import TopicPartition

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}
A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def batch(**options: str) -> SourceOptions:
    return read_source_options(SERVERS | {"subscribe": "a"} | _dotted(options), Use.BATCH_READ)


def stream(**options: str) -> SourceOptions:
    return read_source_options(SERVERS | {"subscribe": "a"} | _dotted(options), Use.STREAM_READ)


def _dotted(options: dict[str, str]) -> dict[str, str]:
    return {name.replace("__", "."): text for name, text in options.items()}


def test_what_is_not_given_has_the_defaults_of_sparks_own_source() -> None:
    assert batch() == SourceOptions(
        properties=(
            ("bootstrap.servers", "localhost:9092"),
            ("max.partition.fetch.bytes", "4194304"),
            ("receive.buffer.bytes", "-1"),
        ),
        selection=Subscribe(("a",)),
        start=Everywhere(EARLIEST),
        end=Everywhere(LATEST),
        max_offsets_per_trigger=None,
        min_offsets_per_trigger=None,
        trigger_delay_ms_max=15 * 60 * 1000,
        min_partitions=None,
        max_records_per_partition=None,
        has_headers=False,
        fails_on_data_loss=True,
        commit_group=None,
        poll_timeout_ms=120_000,
        fetch_attempts=3,
        fetch_retry_interval_ms=1_000,
    )
    assert stream().start == Everywhere(LATEST)


def test_names_of_options_may_be_in_any_case() -> None:
    options = SERVERS | {"SUBSCRIBE": "a", "maxoffsetspertrigger": "5", "FailOnDataLoss": "false"}
    found = read_source_options(options, Use.STREAM_READ)
    assert (found.max_offsets_per_trigger, found.fails_on_data_loss) == (5, False)


def test_every_option_of_a_stream_is_read() -> None:
    found = stream(
        maxOffsetsPerTrigger="500",
        minOffsetsPerTrigger="100",
        maxTriggerDelay="10s",
        minPartitions="8",
        maxRecordsPerPartition="1000",
        includeHeaders="true",
        commitGroup=" lag ",
        kafkaConsumer__pollTimeoutMs="7000",
        fetchOffset__numRetries="5",
        fetchOffset__retryIntervalMs="0",
        kafka__isolation__level="read_committed",
    )
    assert (found.max_offsets_per_trigger, found.min_offsets_per_trigger) == (500, 100)
    assert (found.trigger_delay_ms_max, found.min_partitions, found.max_records_per_partition) == (
        10_000,
        8,
        1000,
    )
    assert (found.has_headers, found.commit_group, found.poll_timeout_ms) == (True, "lag", 7000)
    assert (found.fetch_attempts, found.fetch_retry_interval_ms) == (5, 0)
    assert client_config(found.properties).is_read_committed


@pytest.mark.parametrize(
    ("option", "selection"),
    [
        ({"subscribe": " a, b ,,a"}, Subscribe(("a", "b"))),
        ({"subscribePattern": " topic-.* "}, SubscribePattern("topic-.*")),
        ({"assign": '{"a":[0,1]}'}, Assign(frozenset({A0, A1}))),
    ],
)
def test_topics_are_selected_in_three_ways(option: dict[str, str], selection: Any) -> None:
    assert read_source_options(SERVERS | option, Use.BATCH_READ).selection == selection


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "one of 'subscribe', 'subscribePattern', 'assign'"),
        ({"subscribe": "a", "assign": '{"a":[0]}'}, "'subscribe' is given as well"),
        ({"subscribe": "a", "subscribePattern": "a"}, "only one of"),
        ({"subscribe": " , "}, "names no topic"),
        ({"subscribePattern": "  "}, "empty"),
        ({"subscribePattern": "a("}, "not a regular expression"),
        ({"assign": "a"}, "expected partitions by topic"),
    ],
)
def test_there_has_to_be_exactly_one_selection(options: dict[str, str], reason: str) -> None:
    with pytest.raises(OptionRefused, match=reason):
        read_source_options(SERVERS | options, None)


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"startingOffsets": " Latest "}, Everywhere(LATEST)),
        ({"startingOffsets": "earliest"}, Everywhere(EARLIEST)),
        ({"startingOffsets": '{"a":{"0":23,"1":-2}}'}, AtOffsets("startingOffsets", {A0: 23, A1: -2})),
        (
            {"startingTimestamp": "1700000000000"},
            AtTime("startingTimestamp", 1700000000000, WithoutMatch.ERROR),
        ),
        (
            {"startingOffsetsByTimestamp": '{"a":{"0":5}}', "startingOffsetsByTimestampStrategy": "LATEST"},
            AtTimes("startingOffsetsByTimestamp", {A0: 5}, WithoutMatch.LATEST),
        ),
        (
            {
                "startingTimestamp": "1",
                "startingOffsetsByTimestamp": '{"a":{"0":5}}',
                "startingOffsets": "latest",
            },
            AtTime("startingTimestamp", 1, WithoutMatch.ERROR),
        ),
    ],
)
def test_a_start_is_given_by_time_or_offset_and_times_come_first(given: dict[str, str], place: Any) -> None:
    assert stream(**given).start == place


@pytest.mark.parametrize(
    "given",
    [
        {"startingOffsets": "newest"},
        {"startingOffsets": '{"a":{"0":-3}}'},
        {"startingTimestamp": "-1"},
        {"startingTimestamp": "yesterday"},
        {"startingOffsetsByTimestamp": '{"a":{"0":-5}}'},
        {"startingOffsetsByTimestamp": "5"},
        {"startingOffsetsByTimestampStrategy": "earliest"},
    ],
)
def test_what_is_no_place_to_start_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(OptionRefused, match=next(iter(given))):
        stream(**given)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"startingOffsets": "latest"}, "cannot start at the latest"),
        ({"startingOffsets": '{"a":{"0":-1}}'}, "cannot start at the latest .*a-0"),
        ({"endingOffsets": "earliest"}, "cannot end at the earliest"),
        ({"endingOffsets": '{"a":{"0":-2}}'}, "cannot end at the earliest .*a-0"),
        ({"startingOffsets": '{"a":{"0":5}}', "endingOffsets": '{"a":{"1":5}}'}, "same partitions"),
        ({"startingOffsets": '{"a":{"0":6}}', "endingOffsets": '{"a":{"0":5}}'}, "6, is after .* 5, for a-0"),
        (
            {"startingOffsetsByTimestamp": '{"a":{"0":6}}', "endingOffsetsByTimestamp": '{"a":{"0":5}}'},
            "the time to start at",
        ),
    ],
)
def test_a_batch_has_something_between_its_start_and_end(given: dict[str, str], reason: str) -> None:
    with pytest.raises(OptionRefused, match=reason):
        batch(**given)


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    with pytest.raises(OptionRefused, match=f"{name}.*a stream has no end"):
        stream(**{name: "latest"})


@pytest.mark.parametrize(
    "name", ["maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay", "commitGroup"]
)
def test_a_batch_has_no_triggers(name: str) -> None:
    with pytest.raises(OptionRefused, match=f"{name}.*no meaning in reading a batch"):
        batch(**{name: "1"})


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_an_option_is_refused_wherever_it_has_no_meaning(name: str) -> None:
    for use in set(Use) - OPTIONS[name]:
        read = read_source_options if use.is_read else read_sink_options
        with pytest.raises(OptionRefused, match=f"'{name}': it has no meaning in {use.value}: "):
            read(SERVERS | {name: "1"}, use)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("subscribes", "subscribe"),
        ("startingOffset", "startingOffsets"),
        ("maxOffsetPerTrigger", "maxOffsetsPerTrigger"),
        ("failOnDataLos", "failOnDataLoss"),
        ("includeHeader", "includeHeaders"),
        ("bootstrap.servers", "kafka.bootstrap.servers"),
        ("kafkaConsumer.pollTimeout", "kafkaConsumer.pollTimeoutMs"),
    ],
)
def test_a_misspelt_option_is_refused_with_the_nearest_one(given: str, meant: str) -> None:
    with pytest.raises(OptionRefused, match=f"option '{given}': .*did you mean '{meant}'"):
        read_source_options(SERVERS | {"subscribe": "a", given: "x"}, None)


def test_an_option_that_is_near_to_none_is_refused_as_well() -> None:
    with pytest.raises(OptionRefused, match="'frobnicate': there is no such option; clients' own"):
        batch(frobnicate="1")


def test_a_path_is_refused_with_what_to_use_instead() -> None:
    with pytest.raises(OptionRefused, match=r"'path': topics have no path.*'subscribe'.*'topic'"):
        batch(path="/data")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("auto.offset.reset", "startingOffsets"),
        ("key.deserializer", "functions of Spark"),
        ("value.deserializer", "functions of Spark"),
        ("enable.auto.commit", "commitGroup"),
        ("interceptor.classes", "Java classes"),
    ],
)
def test_options_of_kafkas_consumer_that_would_change_the_meaning_are_refused(name: str, reason: str) -> None:
    with pytest.raises(OptionRefused, match=f"'kafka.{name}'.*{reason}"):
        read_source_options(SERVERS | {"subscribe": "a", f"kafka.{name}": "x"}, Use.BATCH_READ)


def test_an_option_of_the_client_that_is_wrong_is_named_as_the_user_wrote_it() -> None:
    for name, text, reason in (
        ("kafka.isolation.levl", "x", "isolation.level"),
        ("kafka.isolation.level", "none", "none of"),
        ("kafka.security.protocol", "SSL", "TLS"),
        ("kafka.sasl.mechanism", "PLAIN", "SASL"),
    ):
        with pytest.raises(OptionRefused, match=f"'{name}'.*{reason}"):
            read_source_options(SERVERS | {"subscribe": "a", name: text}, None)


def test_the_cluster_has_to_be_named() -> None:
    with pytest.raises(OptionRefused, match=r"'kafka.bootstrap.servers'"):
        read_source_options({"subscribe": "a"}, None)
    with pytest.raises(OptionRefused, match=r"'kafka.bootstrap.servers'"):
        read_sink_options({"topic": "a"}, Use.BATCH_WRITE)


def test_fewer_offsets_at_most_than_at_least_are_refused() -> None:
    with pytest.raises(OptionRefused, match="10 is more than maxOffsetsPerTrigger, 5"):
        stream(minOffsetsPerTrigger="10", maxOffsetsPerTrigger="5")
    assert stream(minOffsetsPerTrigger="5", maxOffsetsPerTrigger="5").min_offsets_per_trigger == 5


@pytest.mark.parametrize(
    "name", ["maxOffsetsPerTrigger", "minOffsetsPerTrigger", "minPartitions", "maxRecordsPerPartition"]
)
def test_counts_are_positive(name: str) -> None:
    for text in ("0", "-1", "many"):
        with pytest.raises(OptionRefused, match=name):
            stream(**{name: text})


def test_brokers_see_the_group_id_in_the_clients_id() -> None:
    def client_id(**options: str) -> str:
        return client_config(batch(**options).properties).client_id

    assert client_id() == "headrace"
    assert client_id(kafka__group__id="mine") == "consumer-mine"
    assert client_id(groupIdPrefix="team").startswith("consumer-team-")
    assert client_id(groupIdPrefix="team", kafka__group__id="mine") == "consumer-mine"
    assert client_id(groupIdPrefix="team", kafka__client__id="me") == "me"


def test_a_sink_has_a_topic_or_not() -> None:
    def topic(**options: str) -> str | None:
        return read_sink_options(SERVERS | options, Use.STREAM_WRITE).topic

    assert topic() is None
    assert topic(topic=" a ", checkpointLocation="/somewhere") == "a"
    with pytest.raises(OptionRefused, match="empty"):
        topic(topic=" ")


@pytest.mark.parametrize("name", ["key.serializer", "value.serializer"])
def test_a_sink_has_no_serializers(name: str) -> None:
    with pytest.raises(OptionRefused, match="functions of Spark"):
        read_sink_options(SERVERS | {"topic": "a", f"kafka.{name}": "x"}, Use.BATCH_WRITE)


def test_options_travel_to_workers() -> None:
    options = stream(startingOffsets='{"a":{"0":23}}', includeHeaders="true")
    assert pickle.loads(pickle.dumps(options)) == options
