"""Batches that Kafka refuses, or that would poison consumers: each is refused with its code."""

import pytest

from headrace.records.validator import RecordsRefused, validate
from tests.support_records import NOW, Refusal, all_refusals, good, rules_for

REFUSALS = all_refusals()


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.name)
def test_a_bad_batch_is_refused_with_kafka_s_code(case: Refusal) -> None:
    with pytest.raises(RecordsRefused) as refusal:
        validate(
            bytearray(case.make()),
            rules_for(case.settings, case.origin),
            NOW,
            produce_version=case.produce_version,
        )
    assert refusal.value.code == case.code
    assert tuple(error.batch_index for error in refusal.value.record_errors) == case.record_errors
    assert (refusal.value.client_message is not None) == bool(case.record_errors)


def test_the_table_has_many_kinds_and_no_name_twice() -> None:
    names = [case.name for case in REFUSALS]
    assert len(set(names)) == len(names)
    assert len({name.split(",")[0] for name in names}) >= 80


def test_the_batch_that_the_table_spoils_is_good_itself() -> None:
    assert validate(bytearray(good().encode()), rules_for("-"), NOW).count == 3


def refusal_of(data: bytes, settings: str) -> RecordsRefused:
    with pytest.raises(RecordsRefused) as refusal:
        validate(bytearray(data), rules_for(settings), NOW)
    return refusal.value


def named(name: str) -> Refusal:
    return next(case for case in REFUSALS if case.name == name)


def test_a_missing_key_is_told_as_kafka_tells_it() -> None:
    case = named("no key on a compacted topic, none")
    refusal = refusal_of(case.make(), case.settings)
    said = "Compacted topic cannot accept message without key in topic partition topic-0"
    assert [error.message for error in refusal.record_errors] == [said, said]
    assert refusal.client_message == (
        "One or more records have been rejected due to 2 record errors in total, and only showing the first "
        f"three errors at most: [RecordError(batchIndex=1, message='{said}'), "
        f"RecordError(batchIndex=2, message='{said}')]"
    )


def test_a_timestamp_out_of_range_is_told_as_kafka_tells_it() -> None:
    case = named("timestamp too old, snappy")
    refusal = refusal_of(case.make(), case.settings)
    assert refusal.client_message == "One or more records have been rejected due to invalid timestamp"
    assert refusal.record_errors[0].message == (
        "Timestamp 1690000000000 of message with offset 0 is out of range. "
        "The timestamp should be within [1699999999000, 1700003600000]"
    )


def test_an_append_time_set_by_a_producer_is_told_as_kafka_tells_it() -> None:
    case = named("append-time batch on an append-time topic, snappy")
    assert refusal_of(case.make(), case.settings).record_errors[2].message == (
        "Invalid timestamp type in message PartialDefaultRecord(offset=2, timestamp=1700000000000, "
        "key=3 bytes, value=5 bytes). Producer should not set timestamp type to LogAppendTime."
    )


def test_an_old_format_is_named() -> None:
    refusal = refusal_of(good(magic=1).encode(), "-")
    assert "magic version 2, not 1" in refusal.message
