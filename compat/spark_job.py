"""Runs with PySpark of the connector's version: everything in spark_cases.py, once with each source and sink.

`python -m compat.spark_job ARGUMENTS.json RESULT.json`. Rows are turned into JSON such that what differs
differs there too.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import headrace.spark
from compat import spark_cases as cases
from tests.support_spark import PATIENCE_SECONDS, start_spark

FORMATS = ("kafka", "headrace")


class Job:
    """One cluster, asked everything."""

    def __init__(self, spark: SparkSession, bootstrap: str, scratch: Path) -> None:
        self._spark = spark
        self._servers = {"kafka.bootstrap.servers": bootstrap}
        self._scratch = scratch

    def run(self) -> dict[str, Any]:
        """Results by group of cases, case and format."""
        batches = cases.BATCHES | cases.TRANSACTIONS
        return {
            "batches": _each(batches, self._batch),
            "streams": _each(cases.STREAMS, self._stream),
            "refused": _each(cases.REFUSED, self._refusal),
            "writes": _each(cases.WRITES, self._write),
            "writes refused": _each(cases.WRITES_REFUSED, self._write_refusal),
            "stream write": {name: self._stream_write(name) for name in FORMATS},
            "group": self._commit_group(),
        }

    def _batch(self, name: str, _: str, options: dict[str, str]) -> Any:
        frame = self._spark.read.format(name).options(**self._servers, **options).load()
        return [json.loads(frame.schema.json()), _rows(frame)]

    def _refusal(self, name: str, _: str, options: dict[str, str]) -> str | None:
        frame = self._spark.read.format(name)
        return _said(lambda: frame.options(**self._servers, **options).load().collect())

    def _stream(self, name: str, case: str, options: dict[str, str]) -> Any:
        batches: list[Any] = []
        frame = self._spark.readStream.format(name).options(**self._servers, **options)
        self._drain(
            frame.option("subscribe", "rows").load(),
            f"{name}-{case}",
            lambda rows, _: batches.append(_rows(rows)),
        )
        return [batch for batch in batches if batch]

    def _write(self, name: str, case: str, what: tuple[dict[str, str], str]) -> Any:
        options, sql = what
        target = _target(name, case)
        options = {key: text.replace("TARGET", target) for key, text in options.items()}
        frame = self._spark.sql(sql.replace("TARGET", target)).coalesce(1)
        frame.write.format(name).options(**self._servers, **options).mode("append").save()
        return self._contents(target)

    def _write_refusal(self, name: str, _: str, what: tuple[dict[str, str], str]) -> str | None:
        options, sql = what
        writer = self._spark.sql(sql).write.format(name).options(**self._servers, **options).mode("append")
        return _said(writer.save)

    def _stream_write(self, name: str) -> Any:
        target = _target(name, "stream")
        source = (
            self._spark.readStream.format(name)
            .options(**self._servers, subscribe="rows", startingOffsets="earliest", maxOffsetsPerTrigger="25")
            .option("includeHeaders", "true")
            .load()
        )
        query = (
            source.select("key", "value", "headers", "partition")
            .writeStream.format(name)
            .options(**self._servers, topic=target, checkpointLocation=str(self._scratch / target))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(PATIENCE_SECONDS)
        return self._contents(target)

    def _commit_group(self) -> str:
        """A stream that tells a group how far it is; the group's name."""
        group = "spark-progress"
        frame = self._spark.readStream.format("headrace").options(**self._servers, commitGroup=group)
        frame = frame.options(subscribe="rows", startingOffsets="earliest", maxOffsetsPerTrigger="25")
        self._drain(frame.load(), group, lambda rows, _: rows.count())
        return group

    def _drain(self, frame: DataFrame, name: str, take: Callable[[DataFrame, int], object]) -> None:
        def each(rows: DataFrame, number: int) -> None:
            take(rows, number)

        checkpoint = str(self._scratch / f"{name} checkpoint")
        query = (
            frame.writeStream.foreachBatch(each)
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(PATIENCE_SECONDS)

    def _contents(self, topic: str) -> Any:
        """What a topic holds, without what differs from one write to the next: times and the topic's name."""
        frame = (
            self._spark.read.format("kafka")
            .options(**self._servers, subscribe=topic, includeHeaders="true")
            .load()
            .orderBy("partition", "offset")
        )
        return _plain(frame.select("partition", "offset", "key", "value", "headers"))


def _target(name: str, case: str) -> str:
    return f"target-{name}-{case.replace(' ', '-')}"


def _each(wanted: dict[str, Any], ask: Callable[[str, str, Any], Any]) -> dict[str, dict[str, Any]]:
    """Each case with both formats; where one fails, what it says is its answer."""
    return {case: {name: _answer(ask, name, case, what) for name in FORMATS} for case, what in wanted.items()}


def _answer(ask: Callable[[str, str, Any], Any], name: str, case: str, what: Any) -> Any:
    try:
        return ask(name, case, what)
    except Exception as problem:  # noqa: BLE001  # One case must not keep the others from being compared.
        return f"{name} failed: {type(problem).__name__}: {problem}"


def _said(attempt: Callable[[], object]) -> str | None:
    """What was said against it; None if it went well."""
    try:
        attempt()
    except Exception as problem:  # noqa: BLE001  # Whatever it is, it is what the user gets.
        return f"{type(problem).__name__}: {problem}"
    return None


def _rows(frame: DataFrame) -> list[Any]:
    return _plain(frame.orderBy("topic", "partition", "offset"))


def _plain(frame: DataFrame) -> list[Any]:
    return [[_value(value) for value in row] for row in frame.collect()]


def _value(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        return {"bytes": bytes(value).hex()}
    if isinstance(value, list | tuple):
        return [_value(item) for item in value]
    return value if isinstance(value, int | str | None) else str(value)


def main() -> None:
    given = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    scratch = Path(given["scratch"])
    # As small as the number of cases: what a connector logs is of no interest here.
    spark = start_spark(scratch / "spark", {"spark.jars": given["jars"]})
    headrace.spark.register(spark)
    found = Job(spark, given["bootstrap"], scratch).run()
    Path(sys.argv[2]).write_text(json.dumps(found), encoding="utf-8")
    spark.stop()


if __name__ == "__main__":
    main()
