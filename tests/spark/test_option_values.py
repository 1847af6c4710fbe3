"""Values of options, as Spark's users write them."""

import pytest

from headrace.spark import option_values as values
from headrace.spark.errors import OptionRefused
from headrace.types import TopicPartition


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("15m", 900_000),
        ("2min", 120_000),
        ("30s", 30_000),
        ("250ms", 250),
        ("250", 250),
        ("5000us", 5),
        ("1h", 3_600_000),
        ("1d", 86_400_000),
        (" 10 S ", 10_000),
        ("0", 0),
    ],
)
def test_durations_are_those_of_spark(text: str, milliseconds: int) -> None:
    assert values.duration_ms("maxTriggerDelay", text) == milliseconds


@pytest.mark.parametrize("text", ["", "soon", "1.5s", "10 parsecs", "-5s", "s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(OptionRefused, match="maxTriggerDelay"):
        values.duration_ms("maxTriggerDelay", text)


def test_booleans_are_true_or_false_in_any_case() -> None:
    assert values.boolean("failOnDataLoss", " True ")
    assert not values.boolean("failOnDataLoss", "FALSE")
    with pytest.raises(OptionRefused, match="'yes' is neither true nor false"):
        values.boolean("failOnDataLoss", "yes")


def test_numbers_have_bounds() -> None:
    assert values.whole_number("n", " 7 ") == 7
    assert values.whole_number("n", str(2**63 - 1)) == 2**63 - 1
    for text, reason in (("7.5", "not a whole number"), ("-1", "too small"), (str(2**63), "too large")):
        with pytest.raises(OptionRefused, match=reason):
            values.whole_number("n", text)
    with pytest.raises(OptionRefused, match="too large"):
        values.small_number("n", str(2**31))


def test_partitions_are_given_by_topic() -> None:
    assert values.partitions("assign", '{"a":[0,2],"b":[1]}') == {
        TopicPartition("a", 0),
        TopicPartition("a", 2),
        TopicPartition("b", 1),
    }


@pytest.mark.parametrize(
    "text",
    ["", "a", "[]", "{}", '{"a":0}', '{"a":[-1]}', '{"a":["0"]}', '{"a":[true]}', '{"a":[]}', '{"a":[0]'],
)
def test_what_names_no_partitions_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(OptionRefused, match='"topicA"'):
        values.partitions("assign", text)


def test_numbers_are_given_by_topic_and_partition() -> None:
    found = values.numbers_by_partition("startingOffsets", '{"a":{"0":23,"1":-1},"b":{"0":-2}}', "such as")
    assert found == {TopicPartition("a", 0): 23, TopicPartition("a", 1): -1, TopicPartition("b", 0): -2}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "latest?",
        "[]",
        "{}",
        '{"a":5}',
        '{"a":{"x":5}}',
        '{"a":{"0":"5"}}',
        '{"a":{"0":1.5}}',
        '{"a":{"-1":5}}',
    ],
)
def test_what_is_not_by_topic_and_partition_is_refused(text: str) -> None:
    with pytest.raises(OptionRefused, match="expected such as"):
        values.numbers_by_partition("startingOffsets", text, "such as")
