"""Lines of input as records: cut, counted, parsed, and named when they are bad."""

import asyncio
import json
import os
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.cli.producing import run
from headrace.cli.producing.json_lines import parse_json
from headrace.cli.producing.lines import BadLine, LineCutter, Lines
from headrace.cli.producing.row_checks import first_unsendable
from headrace.cli.producing.standard_input import StandardInput
from headrace.cli.producing.text_lines import keyed_by, parse_values
from headrace.client.column_writer import ColumnWriter
from headrace.client.delivery import DeliveryReport


@given(st.lists(st.binary(max_size=8).map(lambda data: data.replace(b"\r", b"\n"))), st.booleans())
def test_lines_are_the_same_however_the_bytes_come(chunks: list[bytes], ends: bool) -> None:
    whole = b"".join(chunks) + (b"\n" if ends else b"")
    cutter = LineCutter(1000)
    got = [cutter.feed(chunk) for chunk in (*chunks, *([b"\n"] if ends else []))] + [cutter.rest()]
    found: list[bytes] = []
    for lines in got:
        if lines is not None:
            assert lines.first == len(found) + 1
            found += lines.data.split(b"\n")
    expected = whole.split(b"\n")
    assert found == (expected[:-1] if expected[-1] == b"" else expected)


def test_a_line_without_end_is_refused_before_it_fills_memory() -> None:
    cutter = LineCutter(10)
    cutter.feed(b"one\ntwo")
    with pytest.raises(BadLine, match=r"line 2: it is longer than max\.request\.size"):
        cutter.feed(b"x" * 8)


def test_values_are_the_lines_as_they_are() -> None:
    parsed = parse_values(Lines(b"a\n\n \xff\r", 5))
    assert parsed.records.to_pydict() == {"value": [b"a", b"", b" \xff\r"]}
    assert list(parsed.numbers) == [5, 6, 7]


def test_keys_end_at_the_first_separator() -> None:
    parsed = keyed_by("::")(Lines(b"k::v::w\n::v\nk::", 1))
    assert parsed.records.to_pydict() == {"key": [b"k", b"", b"k"], "value": [b"v::w", b"v", b""]}
    assert parsed.bad is None


def test_a_line_without_separator_is_bad_and_those_before_it_are_records() -> None:
    parsed = keyed_by(":")(Lines(b"k:v\nnone\nk:w", 7))
    assert parsed.records.to_pydict() == {"key": [b"k"], "value": [b"v"]}
    assert str(parsed.bad) == "line 8: it has no ':' between key and value (--key-separator)"


def test_json_holds_everything_that_a_record_has() -> None:
    line = {
        "key": "k",
        "value": "hé",
        "headers": [
            {"key": "h", "value": "1"},
            {"key": "h", "value_base64": "/w=="},
            {"key": "n", "value": None},
        ],
        "partition": 3,
        "timestamp": 17,
    }
    data = b"\n".join([json.dumps(line).encode(), b"  ", b'{"value_base64": "//4="}', b'{"key": null}'])
    parsed = parse_json(Lines(data, 1))
    first, second, third = parsed.records.to_pylist()
    assert first == {
        "key": b"k",
        "value": "hé".encode(),
        "headers": [
            {"key": "h", "value": b"1"},
            {"key": "h", "value": b"\xff"},
            {"key": "n", "value": None},
        ],
        "partition": 3,
        "timestamp": 17,
    }
    assert second["value"] == b"\xff\xfe"
    assert third == dict.fromkeys(("key", "value", "headers", "partition", "timestamp"))
    assert list(parsed.numbers) == [1, 3, 4]


def test_headers_may_be_one_object_and_where_a_record_was_is_passed_over() -> None:
    line = b'{"topic": "t", "offset": 4, "timestamp_type": "create", "value": "v", "headers": {"a": "b"}}'
    (row,) = parse_json(Lines(line, 1)).records.to_pylist()
    assert row["headers"] == [{"key": "a", "value": b"b"}]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "it is not JSON"),
        ('"text"', "it is text; each line must be an object"),
        ("[]", "it is a list"),
        ("{}", "it has neither key nor value"),
        ('{"partition": 3}', "it has neither key nor value"),
        ('{"valu": "x"}', "valu is not a field of a record; did you mean value?"),
        ('{"value": {"a": 1}}', "value is an object; it must be text or null"),
        ('{"value": 1}', "value is a number"),
        ('{"key": true}', "key is true or false"),
        ('{"value": "a", "value_base64": "YQ=="}', "exclude each other"),
        ('{"value_base64": "###"}', "value_base64 is not base64"),
        ('{"value_base64": 5}', "value_base64 is a number; it must be base64"),
        ('{"value": "\\ud800"}', "surrogate"),
        ('{"value": "a", "partition": -1}', "partition is -1; it must be a whole number from 0"),
        ('{"value": "a", "partition": true}', "partition is true"),
        ('{"value": "a", "timestamp": 1.5}', "timestamp is 1.5"),
        ('{"value": "a", "timestamp": 9223372036854775808}', "timestamp is"),
        ('{"value": "a", "headers": "h"}', "headers must be a list"),
        ('{"value": "a", "headers": [{"value": "x"}]}', "headers: each needs a key"),
        ('{"value": "a", "headers": [{"key": "x", "vale": "y"}]}', "headers: vale is not a field"),
        ('{"value": "a", "headers": {"x": 1}}', "headers: value is a number"),
        ("[" * 100_000, "can't be read"),
    ],
)
def test_a_bad_object_is_named_with_the_reason(line: str, reason: str) -> None:
    parsed = parse_json(Lines(b'{"value": "good"}\n' + line.encode() + b'\n{"value": "after"}', 1))
    assert parsed.records.column("value").to_pylist() == [b"good"]
    assert parsed.bad is not None
    assert parsed.bad.number == 2
    assert reason in str(parsed.bad)


def test_bytes_that_are_no_text_are_told() -> None:
    assert "not UTF-8" in str(parse_json(Lines(b'{"value": "\xff"}', 1)).bad)


def test_the_first_row_that_can_not_be_sent_is_found() -> None:
    values = [b"x"] * 100
    records = pa.RecordBatch.from_pydict({"value": values})
    assert first_unsendable(records, "t", 1, 200) is None
    values[40] = values[70] = b"x" * 200
    row, reason = first_unsendable(pa.RecordBatch.from_pydict({"value": values}), "t", 1, 200) or (-1, "")
    assert row == 40
    assert reason.startswith("it takes ")


def test_a_partition_that_the_topic_does_not_have_is_found() -> None:
    columns = {"value": pa.array([b"a", b"b", b"c"]), "partition": pa.array([None, 1, 2], pa.int32())}
    found = first_unsendable(pa.RecordBatch.from_pydict(columns), "t", 2, 1000)
    assert found == (2, "topic 't' has no partition 2; it has 2, from 0 on")


def test_input_is_handed_over_as_it_comes_from_a_pipe() -> None:
    async def read() -> None:
        reading, writing = os.pipe()
        try:
            source = StandardInput(reading)
            waiting = asyncio.ensure_future(source.chunk())
            await asyncio.sleep(0)
            assert not waiting.done()
            os.write(writing, b"a line\nand half")
            assert await waiting == b"a line\nand half"
        finally:
            os.close(writing)
        assert await source.chunk() == b""
        os.close(reading)

    asyncio.run(read())


def test_input_is_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"a\nb\n")

    async def read() -> list[bytes]:
        with file.open("rb") as opened:
            source = StandardInput(opened.fileno())
            return [await source.chunk(), await source.chunk()]

    assert asyncio.run(read()) == [b"a\nb\n", b""]


class StuckWriter:
    """Has taken two records that no broker takes."""

    def __init__(self) -> None:
        self.report = DeliveryReport(accepted=3, acknowledged=1)

    async def flush(self) -> None:
        await asyncio.Event().wait()


def test_who_ends_it_is_told_what_is_left_and_who_ends_it_again_what_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test() -> None:
        told: asyncio.Queue[str] = asyncio.Queue()
        monkeypatch.setattr(run, "complain", told.put_nowait)
        monkeypatch.setattr(run, "_QUIET_S", 0.0)
        ending = asyncio.create_task(run._flush_at_last(cast(ColumnWriter, StuckWriter())))
        assert await told.get() == "2 records are still to be written; end it once more to give up"
        ending.cancel()
        assert await told.get() == "2 records are given up, and may or may not have been written"
        with pytest.raises(asyncio.CancelledError):
            await ending

    asyncio.run(test())
