"""Stopping is orderly and bounded; a failure ends one connection, with one line, and never the process."""

import asyncio
import logging
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from headrace.net.connection import ServerConnection
from tests.support_net import (
    Echo,
    Frames,
    Large,
    Parking,
    Run,
    WatchedRange,
    file_of,
    framed,
    rounds,
    site,
    soon,
)


def test_stopping_sends_what_is_ready_and_closes_everything(run: Run) -> None:
    async def scenario() -> None:
        service = Parking()
        async with site(service) as place:
            answered, idle, parked = [await place.connect() for _ in range(3)]
            await answered.ask(b"a", b"b")
            await service.arrived(2)
            await parked.ask(b"c")
            await service.arrived(3)
            await place.accepted(3)
            dropped = asyncio.Event()
            service.slots[2].on_close = dropped.set
            service.slots[0].complete([framed(b"ready")])
            await soon(place.network.stop(60_000))
            assert place.network.connections == 0
            assert await answered.rest() == framed(b"ready")
            assert await idle.rest() == b""
            assert await parked.rest() == b""
            assert dropped.is_set()
            with pytest.raises(ConnectionRefusedError):
                await place.connect()

    run(scenario())


def test_stopping_waits_for_a_slow_reader_to_take_what_is_ready(run: Run) -> None:
    async def scenario() -> None:
        service = Large()
        async with site(service) as place:
            client = await place.connect()
            await client.ask(*[b"x"] * 400)
            await soon(service.is_full.wait())
            await rounds()
            handled = len(service.seen)
            stopping = asyncio.ensure_future(place.network.stop(60_000))
            await rounds()
            assert not stopping.done()
            received = await client.rest()
            await soon(stopping)
            assert received == framed(b"x".ljust(100_000, b".")) * handled

    run(scenario())


def test_stopping_does_not_wait_longer_than_it_may_for_who_does_not_read(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "headrace.net")

    async def scenario() -> None:
        service = Large()
        async with site(service) as place:
            client = await place.connect()
            await client.ask(*[b"x"] * 400)
            await soon(service.is_full.wait())
            await soon(place.network.stop(10))
            assert place.network.connections == 0
            assert service.connections[0].closed

    run(scenario())
    assert "the node is stopping; the client did not take its replies in time" in caplog.text


def test_no_request_is_handled_once_stopping_began(run: Run) -> None:
    async def scenario() -> None:
        service = Echo()
        async with site(service) as place:
            client = await place.connect()
            await client.ask(b"a")
            assert await client.reply() == b"a"
            client.socket.send(framed(b"too late"))
            await place.network.stop(1000)
            assert await client.rest() == b""
            assert service.seen == [b"a"]

    run(scenario())


def test_a_stopped_listener_keeps_its_connections_and_is_forgotten_with_the_last(run: Run) -> None:
    async def scenario() -> None:
        async with site(Echo()) as place:
            client = await place.connect()
            await client.ask(b"a")
            assert await client.reply() == b"a"
            place.listener.stop_accepting()
            await client.ask(b"b")
            assert await client.reply() == b"b"
            assert place.network.listeners == [place.listener]
            client.close()
            await place.open_connections(0)
            assert place.network.listeners == []
            assert place.network.bytes_in == place.network.bytes_out == 10

    run(scenario())


class Failing(Frames):
    """Fails on request."""

    def answer(self, connection: ServerConnection, body: bytes) -> None:
        """Echo, or fail."""
        if body == b"fail":
            raise KeyError("what was asked for")
        connection.reserve().complete([framed(body)])


def test_a_failing_request_ends_its_connection_only_with_one_line(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with site(Failing()) as place:
            bad, good = await place.connect(), await place.connect()
            await bad.ask(b"1", b"fail", b"2")
            await good.ask(b"3")
            assert await bad.rest() == framed(b"1")
            assert await good.reply() == b"3"
            await good.ask(b"4")
            assert await good.reply() == b"4"

    with caplog.at_level(logging.INFO, "headrace.net"):
        run(scenario())
    lines = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(lines) == 1
    assert "KeyError: 'what was asked for'" in lines[0].getMessage()
    assert lines[0].exc_info is None


def test_the_way_to_a_failure_is_shown_at_debug_level(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with site(Failing()) as place:
            client = await place.connect()
            await client.ask(b"fail")
            assert await client.rest() == b""

    with caplog.at_level(logging.DEBUG, "headrace.net"):
        run(scenario())
    assert "Traceback" in caplog.text


def test_a_reply_before_closing_reaches_the_client(run: Run) -> None:
    class LastWords(Frames):
        def answer(self, connection: ServerConnection, body: bytes) -> None:
            connection.reserve().complete([framed(b"x" * 3_000_000)])
            connection.close_when_sent("that was all")

    async def scenario() -> None:
        service = LastWords()
        async with site(service) as place:
            client = await place.connect()
            await client.ask(b"a", b"b")
            assert await client.rest() == framed(b"x" * 3_000_000)
            assert service.seen == [b"a"]
            assert service.connections[0].close_reason == "that was all"

    run(scenario())


def test_a_line_about_a_client_stays_one_line(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    class Named(Frames):
        def answer(self, connection: ServerConnection, body: bytes) -> None:
            connection.client_id = "evil\nERROR everything is broken"
            raise ValueError("no\nFATAL more lies")

    async def scenario() -> None:
        async with site(Named()) as place:
            client = await place.connect()
            await client.ask(b"a")
            assert await client.rest() == b""

    run(scenario())
    assert all("\n" not in record.getMessage() for record in caplog.records)


def test_a_reply_of_the_wrong_kind_is_the_fault_of_who_gave_it(run: Run, tmp_path: Path) -> None:
    disk, file = file_of(tmp_path, bytes(100_000))

    async def scenario() -> None:
        service = Parking()
        async with site(service) as place:
            client = await place.connect()
            await client.ask(b"a")
            await service.arrived(1)
            watched = WatchedRange(file, 0, 100_000)
            wrong: Sequence[Any] = [watched, None]
            with pytest.raises(TypeError):
                service.slots[0].complete(wrong)
            assert (watched.was_pinned, watched.pins) == (1, 0)
            service.slots[0].complete([framed(b"right")])
            assert await client.reply() == b"right"

    run(scenario())
    disk.close()


def test_random_bytes_end_connections_and_nothing_else(run: Run) -> None:
    chance = random.Random(5)

    async def scenario() -> None:
        async with site(Echo()) as place:
            sound = await place.connect()
            for _ in range(100):
                client = await place.connect()
                await client.send(chance.randbytes(chance.randrange(1, 3000)))
                client.close()
            await sound.ask(b"still there")
            assert await sound.reply() == b"still there"
            await place.open_connections(1)

    run(scenario())


def test_the_reason_is_readable(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        service = Echo()
        async with site(service) as place:
            client = await place.connect()
            await client.ask(b"a")
            assert await client.reply() == b"a"
            service.connections[0].client_id = "app-1"
            service.connections[0].close("the test wants it")

    run(scenario())
    expected = r"closing connection of 127\.0\.0\.1:\d+ on PLAINTEXT \(client id 'app-1'\): the test wants it"
    assert re.search(expected, caplog.text)
