"""Spark's own source and sink beside ours: the same rows for the same options, on Kafka and on Headrace."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat import spark_cases as cases
from compat.kafka_libs import Unavailable
from compat.kafka_peer import running_kafka
from compat.spark_peer import run_job, spark_peer
from tests.support_node import RunningNode
from tests.support_spark import Record, Topics

pytestmark = pytest.mark.timeout(2000)


@pytest.fixture(scope="module")
def connector() -> Path:
    """Spark's own connector, with the PySpark that it belongs to."""
    try:
        return spark_peer()
    except Unavailable as reason:
        pytest.skip(f"could not get the peer: {reason}")


@pytest.fixture(scope="module", params=["apache kafka", "headrace"])
def found(
    request: pytest.FixtureRequest,
    connector: Path,
    kafka_libs: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, Any]]:
    """What both sides made of all cases, on one cluster."""
    directory = tmp_path_factory.mktemp("spark")
    if request.param == "headrace":
        node = RunningNode(directory / "node").start()
        try:
            yield _run(node.bootstrap)
        finally:
            node.kill()
        return
    with running_kafka(directory / "kafka") as kafka:
        yield _run(kafka.address)


def _run(bootstrap: str) -> dict[str, Any]:
    topics = Topics(bootstrap)
    _fill(topics)
    _fill_transactions(topics)
    found: dict[str, Any] = run_job("compat.spark_job", {"bootstrap": bootstrap})
    found["committed"] = topics.committed(found["group"], "rows", 3)
    return found


def _fill(topics: Topics) -> None:
    # Its records are old on purpose, and are to stay nevertheless.
    topics.create("rows", 3, retention_ms="-1")
    for partition in range(3):
        topics.produce("rows", [_record(partition, number) for number in range(cases.ROWS_PER_PARTITION)])
    topics.produce(topics.create("stamped", message_timestamp_type="LogAppendTime"), [Record(b"now")])
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        topics.create(codec)
        topics.produce(codec, [Record(b"%d" % number * 9) for number in range(50)], compression_type=codec)
    topics.values(topics.create("deleted"), 20)
    topics.delete_records("deleted", 8)
    topics.create("empty")
    for name in ("kafka", "headrace"):
        for case in ("stream", *cases.WRITES):
            topics.create(f"target-{name}-{case.replace(' ', '-')}", 3)


def _record(partition: int, number: int) -> Record:
    """Records with everything that a record may have, or not have."""
    value = (None, b"", b"\x00\xff\xfe", b"value %d" % number)[number % 4]
    key = (None, b"", b"key %d" % number)[number % 3]
    headers: tuple[tuple[str, bytes | None], ...] = (("a", b"1"), ("a", None), ("ä", b""))[: number % 4]
    return Record(value, key, partition, cases.TIME_MS + number, headers)


def _fill_transactions(topics: Topics) -> None:
    topics.create("transactions")
    for number, is_kept in enumerate((True, False, True, False)):
        topics.transaction("transactions", f"writer-{number % 2}", [b"%d" % number] * 5, commit=is_kept)


def _check_same(answers: dict[str, Any]) -> None:
    """Neither failed, and both say the same."""
    assert isinstance(answers["kafka"], list), answers["kafka"]
    assert answers["headrace"] == answers["kafka"]


@pytest.mark.parametrize("case", [*cases.BATCHES, *cases.TRANSACTIONS])
def test_a_batch_has_the_same_rows_and_schema(found: dict[str, Any], case: str) -> None:
    answers = found["batches"][case]
    _check_same(answers)
    empty = ("nothing", "empty", "starting time after")
    assert bool(answers["kafka"][1]) is not any(word in case for word in empty)


@pytest.mark.parametrize("case", cases.STREAMS)
def test_a_stream_has_the_same_rows_in_the_same_batches(found: dict[str, Any], case: str) -> None:
    answers = found["streams"][case]
    _check_same(answers)
    assert bool(answers["kafka"]) is not case.endswith("the latest")


@pytest.mark.parametrize("case", cases.REFUSED)
def test_both_refuse_the_same_options(found: dict[str, Any], case: str) -> None:
    answers = found["refused"][case]
    assert answers["kafka"] is not None
    assert answers["headrace"] is not None


@pytest.mark.parametrize("case", cases.WRITES)
def test_what_is_written_is_the_same(found: dict[str, Any], case: str) -> None:
    answers = found["writes"][case]
    _check_same(answers)
    assert answers["kafka"]


@pytest.mark.parametrize("case", cases.WRITES_REFUSED)
def test_both_refuse_to_write_the_same(found: dict[str, Any], case: str) -> None:
    answers = found["writes refused"][case]
    assert answers["kafka"] is not None
    assert answers["headrace"] is not None


def test_a_stream_writes_the_same(found: dict[str, Any]) -> None:
    answers = found["stream write"]
    assert answers["headrace"] == answers["kafka"]
    assert len(answers["kafka"]) == 3 * cases.ROWS_PER_PARTITION


def test_a_group_sees_how_far_a_stream_is(found: dict[str, Any]) -> None:
    assert found["committed"] == [cases.ROWS_PER_PARTITION] * 3
