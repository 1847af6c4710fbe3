"""Records as lines, places in a topic, and output that may have a slow reader or none."""

import asyncio
import json
import os
import socket
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace.cli.consuming.json_rows import JsonRows
from headrace.cli.consuming.places import Kind, Place, parse_place
from headrace.cli.consuming.standard_output import StandardOutput
from headrace.cli.consuming.text_rows import TextRows
from headrace.cli.producing.json_lines import parse_json
from headrace.cli.producing.lines import Lines
from headrace.client.column_reader import columns_schema


def records(*rows: dict[str, Any], views: bool = False) -> pa.RecordBatch:
    usual: dict[str, Any] = {
        "offset": 0,
        "timestamp": 1000,
        "timestamp_type": 0,
        "key": None,
        "value": None,
        "headers": [],
        "partition": 0,
        "topic": "t",
    }
    return pa.RecordBatch.from_pylist([usual | row for row in rows], columns_schema(views=views))


@pytest.mark.parametrize("views", [False, True])
def test_text_is_the_values_bytes_and_null_for_none(views: bool) -> None:
    batch = records({"value": b"a"}, {"value": b"\xff\xfe"}, {"value": b""}, {}, views=views)
    assert bytes(TextRows().render(batch)) == b"a\n\xff\xfe\n\nnull\n"
    assert bytes(TextRows().render(batch.slice(1, 2))) == b"\xff\xfe\n\n"
    assert bytes(TextRows().render(batch.slice(0, 0))) == b""


def test_text_has_keys_if_there_is_a_separator() -> None:
    batch = records({"key": b"k", "value": b"v"}, {"value": b"v"}, {"key": b"", "value": None})
    assert bytes(TextRows("\t").render(batch)) == b"k\tv\nnull\tv\n\tnull\n"


def test_json_holds_everything() -> None:
    batch = records(
        {
            "offset": 5,
            "timestamp_type": 1,
            "key": b"\xff",
            "value": 'h\xe9 "q"\n'.encode(),
            "headers": [
                {"key": "h", "value": b"1"},
                {"key": "n", "value": None},
                {"key": "b", "value": b"\xfe"},
            ],
        },
        {"timestamp": -1},
    )
    first, second = map(json.loads, JsonRows("t", 3).render(batch).splitlines())
    assert first == {
        "topic": "t",
        "partition": 3,
        "offset": 5,
        "timestamp": 1000,
        "timestamp_type": "append",
        "key_base64": "/w==",
        "value": 'h\xe9 "q"\n',
        "headers": [
            {"key": "h", "value": "1"},
            {"key": "n", "value": None},
            {"key": "b", "value_base64": "/g=="},
        ],
    }
    assert (second["timestamp"], second["key"], second["value"], second["headers"]) == (None, None, None, [])


def test_what_is_printed_as_json_can_be_produced_again() -> None:
    batch = records(
        {"key": b"\xff", "value": b"v", "headers": [{"key": "h", "value": b"\xfe"}]}, {"key": b"k"}
    )
    parsed = parse_json(Lines(bytes(JsonRows("t", 2).render(batch)).rstrip(b"\n"), 1))
    assert parsed.bad is None
    first, second = parsed.records.to_pylist()
    assert first == {
        "key": b"\xff",
        "value": b"v",
        "headers": [{"key": "h", "value": b"\xfe"}],
        "partition": 2,
        "timestamp": 1000,
    }
    assert (second["key"], second["value"]) == (b"k", None)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("beginning", Place(Kind.BEGINNING)),
        ("end", Place(Kind.END)),
        ("offset:7", Place(Kind.OFFSET, 7)),
        ("last:3", Place(Kind.LAST, 3)),
        ("time:1000", Place(Kind.TIME, 1000)),
        ("time:1970-01-01T00:00:01Z", Place(Kind.TIME, 1000)),
        ("time:1970-01-01T01:00:00.5+01:00", Place(Kind.TIME, 500)),
    ],
)
def test_places_are_understood(text: str, place: Place) -> None:
    assert parse_place(text) == place


def test_a_time_without_a_zone_is_of_this_machine() -> None:
    local = datetime(2026, 3, 4, 5, 6, 7).astimezone(UTC)
    assert parse_place("time:2026-03-04T05:06:07").number == local.timestamp() * 1000


@pytest.mark.parametrize(
    "text",
    ["", "start", "end:1", "offset", "offset:", "offset:-1", "offset:x", "time:now", "time:1969-01-01"],
)
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not|before 1970"):
        parse_place(text)


def test_output_waits_for_a_slow_reader_without_holding_up_the_loop() -> None:
    data = bytes(range(256)) * 4096

    async def write() -> bytes:
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        output = StandardOutput(writing)
        writing_all = asyncio.ensure_future(output.write(data))
        got = b""
        while len(got) < len(data):
            # The loop goes round while the pipe is full, or this would not be read.
            await asyncio.sleep(0)
            with suppress(BlockingIOError):
                got += os.read(reading, 2**16)
        await writing_all
        os.close(reading)
        os.close(writing)
        return got

    assert asyncio.run(write()) == data


def test_a_reader_that_goes_is_noticed_with_nothing_to_write() -> None:
    async def leave() -> None:
        reading, writing = os.pipe()
        output = StandardOutput(writing)
        watching = asyncio.ensure_future(output.reader_gone())
        await asyncio.sleep(0)
        assert not watching.done()
        os.close(reading)
        await watching
        with pytest.raises(BrokenPipeError):
            await output.write(b"more")
        os.close(writing)

    asyncio.run(leave())


def test_output_goes_to_a_file(tmp_path: Path) -> None:
    file = tmp_path / "out"

    async def write() -> None:
        with file.open("wb") as opened:
            output = StandardOutput(opened.fileno())
            watching = asyncio.ensure_future(output.reader_gone())
            await output.write(b"x" * 100_000)
            assert not watching.done()
            watching.cancel()

    asyncio.run(write())
    assert file.stat().st_size == 100_000


def test_what_a_sockets_peer_says_does_not_make_it_gone() -> None:
    async def test() -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            output = StandardOutput(ours.fileno())
            gone = asyncio.create_task(output.reader_gone())
            theirs.sendall(b"hello?")
            await output.write(b"one\n")
            assert theirs.recv(100) == b"one\n"
            for _ in range(10):
                # Rounds of the loop: what is readable would have been noticed in one of them.
                await asyncio.sleep(0)
            assert not gone.done()
            gone.cancel()
            theirs.close()
            with pytest.raises((BrokenPipeError, ConnectionResetError)):
                await output.write(b"two\n")

    asyncio.run(test())
