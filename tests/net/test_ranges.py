"""Ranges of files reach the client as they were when they were handed out, or the connection ends."""

import asyncio
import errno
import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from headrace.net import ranges
from headrace.net.outbox import COPIED_RANGE_BYTES, PINS_AHEAD, ROUND_BYTES, Outbox, PinPool
from headrace.net.ranges import OutgoingRange
from headrace.net.settings import ConnectionSettings
from tests.support_net import (
    Parking,
    PlainRange,
    Replying,
    Run,
    WatchedRange,
    file_of,
    framed,
    pattern,
    rounds,
    site,
)

LARGE = 8_000_000


def test_ranges_and_bytes_of_all_sizes_arrive_in_order(run: Run, tmp_path: Path) -> None:
    content = pattern(3_000_000)
    disk, file = file_of(tmp_path, content)
    stretches = [
        (0, 1),
        (5, COPIED_RANGE_BYTES),
        (7, COPIED_RANGE_BYTES + 1),
        (100, 2_900_000),
        (2_999_990, 10),
    ]
    expected = b"".join(b"<" + content[at : at + size] + b">" for at, size in stretches)

    def reply(body: bytes) -> Sequence[Any]:
        parts: list[Any] = [len(expected).to_bytes(4, "big")]
        for at, size in stretches:
            parts += [b"<", PlainRange(file, at, size), memoryview(bytearray(b">"))]
        return parts

    async def scenario() -> None:
        async with site(Replying(reply)) as place:
            client = await place.connect()
            await client.ask(b"1", b"2", b"3")
            assert [await client.reply() for _ in range(3)] == [expected] * 3
            assert place.listener.bytes_out == 3 * (len(expected) + 4)

    run(scenario())
    disk.close()


def _truncate(path: str, file: Any, disk: Any) -> None:
    file.truncate(100)
    file.append(b"foreign" * 2_000_000)


def _delete(path: str, file: Any, disk: Any) -> None:
    file.close()
    disk.remove(path)


def _rename(path: str, file: Any, disk: Any) -> None:
    file.rename(path + ".deleted")


def _replace(path: str, file: Any, disk: Any) -> None:
    disk.replace(path, b"foreign" * 2_000_000)


@pytest.mark.parametrize("meanwhile", [_truncate, _delete, _rename, _replace])
def test_a_slow_reader_gets_the_range_as_it_was_whatever_happens_to_the_file(
    run: Run, tmp_path: Path, meanwhile: Callable[[str, Any, Any], None]
) -> None:
    content = pattern(LARGE)
    disk, file = file_of(tmp_path, content)
    path = file.path

    async def scenario() -> None:
        service = Replying(lambda body: [LARGE.to_bytes(4, "big"), PlainRange(file, 0, LARGE)])
        async with site(service) as place:
            client = await place.connect()
            await client.ask(b"all of it")
            start = await client.take(4 + 1000)
            connection = service.connections[0]
            assert connection.unsent_bytes > 0
            meanwhile(path, file, disk)
            assert start[4:] + await client.take(LARGE - 1000) == content

    run(scenario())
    disk.close()


def test_a_file_that_gets_shorter_behind_our_back_ends_the_connection_and_does_not_spin(
    run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    content = pattern(LARGE)
    disk, file = file_of(tmp_path, content)

    async def scenario() -> None:
        watched = WatchedRange(file, 0, LARGE)
        service = Replying(lambda body: [LARGE.to_bytes(4, "big"), watched])
        async with site(service) as place:
            client = await place.connect()
            await client.ask(b"all of it")
            start = await client.take(4)
            os.truncate(file.path, LARGE // 2)
            received = start + await client.rest()
            assert len(received) < LARGE
            assert content.startswith(received[4:])
            assert service.connections[0].closed
            assert watched.pins == 0

    run(scenario())
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(lines) == 1
    assert "too early" in lines[0]
    assert file.path in lines[0]
    disk.close()


def test_descriptors_are_given_back_when_the_range_is_sent_and_when_the_client_leaves(
    run: Run, tmp_path: Path
) -> None:
    disk, file = file_of(tmp_path, pattern(LARGE))

    async def scenario() -> None:
        handed_out: list[WatchedRange] = []

        def reply(body: bytes) -> Sequence[Any]:
            handed_out.append(WatchedRange(file, 0, LARGE))
            return [LARGE.to_bytes(4, "big"), handed_out[-1]]

        service = Replying(reply)
        async with site(service, ConnectionSettings(unsent_bytes_max=3 * LARGE)) as place:
            client = await place.connect()
            await client.ask(b"one")
            await client.reply()
            await rounds()
            assert (handed_out[0].was_pinned, handed_out[0].pins) == (1, 0)
            await client.ask(b"two", b"three")
            await service.arrived(3)
            assert [each.pins for each in handed_out] == [0, 1, 1]
            client.close()
            await place.open_connections(0)
            assert [each.pins for each in handed_out] == [0, 0, 0]

    run(scenario())
    disk.close()


def test_the_range_of_a_reply_that_waits_behind_another_is_given_back_too(run: Run, tmp_path: Path) -> None:
    disk, file = file_of(tmp_path, pattern(LARGE))

    async def scenario() -> None:
        service = Parking()
        async with site(service) as place:
            client = await place.connect()
            await client.ask(b"parked", b"ready")
            await service.arrived(2)
            watched = WatchedRange(file, 0, LARGE)
            service.slots[1].complete([watched])
            assert watched.pins == 1
            client.close()
            await place.open_connections(0)
            assert watched.pins == 0

    run(scenario())
    disk.close()


def test_a_range_that_is_stale_when_it_is_handed_out_ends_the_connection(
    run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    disk, file = file_of(tmp_path, pattern(LARGE))

    async def scenario() -> None:
        good = WatchedRange(file, 0, LARGE)

        def reply(body: bytes) -> Sequence[Any]:
            return [b"head", good, GoneRange(file, 0, LARGE)]

        service = Replying(reply)
        async with site(service) as place:
            client = await place.connect()
            await client.ask(b"gone")
            assert await client.rest() == b""
            assert (good.was_pinned, good.pins) == (1, 0)

    class GoneRange(WatchedRange):
        def pin(self) -> Any:
            raise ranges.RangeCut("truncated since it was read")

    run(scenario())
    assert "truncated since it was read" in caplog.text
    disk.close()


@pytest.mark.parametrize("size", [COPIED_RANGE_BYTES, LARGE])
def test_a_range_beyond_the_end_of_its_file_ends_the_connection(run: Run, tmp_path: Path, size: int) -> None:
    disk, file = file_of(tmp_path, b"short")

    async def scenario() -> None:
        service = Replying(lambda body: [framed(b"fine")] if body == b"?" else [PlainRange(file, 0, size)])
        async with site(service) as place:
            client = await place.connect()
            await client.ask(b"?", b"!")
            assert (await client.rest()).startswith(framed(b"fine")[: 0 if size == COPIED_RANGE_BYTES else 9])
            assert service.connections[0].closed

    run(scenario())
    disk.close()


def test_what_sendfile_can_not_send_is_copied(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = pattern(LARGE)
    disk, file = file_of(tmp_path, content)

    def refuse(*arguments: int) -> int:
        raise OSError(errno.EINVAL, "not from this file system")

    monkeypatch.setattr(os, "sendfile", refuse)

    async def scenario() -> None:
        service = Replying(lambda body: [(LARGE - 1).to_bytes(4, "big"), PlainRange(file, 1, LARGE - 1)])
        async with site(service) as place:
            client = await place.connect()
            await client.ask(b"a", b"b")
            assert [await client.reply() for _ in range(2)] == [content[1:]] * 2

    run(scenario())
    disk.close()


def test_where_there_is_no_sendfile_ranges_are_copied(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = pattern(LARGE)
    disk, file = file_of(tmp_path, content)
    monkeypatch.setattr(ranges, "HAS_SENDFILE", False)
    monkeypatch.delattr(os, "sendfile")

    async def scenario() -> None:
        service = Replying(lambda body: [LARGE.to_bytes(4, "big"), PlainRange(file, 0, LARGE)])
        async with site(service) as place:
            client = await place.connect()
            await client.ask(b"a")
            assert await client.reply() == content

    run(scenario())
    disk.close()


class Bottomless:
    """A socket that takes everything at once."""

    def __init__(self) -> None:
        self.taken = 0

    def fileno(self) -> int:
        return -1

    def send(self, data: bytes, flags: int = 0) -> int:
        self.taken += len(data)
        return len(data)


def test_a_fast_reader_of_a_huge_range_gets_no_more_than_its_share_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, file = file_of(tmp_path, b"")
    file.truncate(5 * ROUND_BYTES)
    sock: Any = Bottomless()

    def send_all(out: int, source: int, position: int, count: int) -> int:
        sock.taken += count
        return count

    monkeypatch.setattr(os, "sendfile", send_all)
    outbox = Outbox()
    outbox.put([outbox.prepare(PlainRange(file, 0, 5 * ROUND_BYTES))])
    outbox.unsent = 5 * ROUND_BYTES
    shares = []
    while not outbox.send(sock):
        shares.append(sock.taken)
    assert shares == [ROUND_BYTES, 2 * ROUND_BYTES, 3 * ROUND_BYTES, 4 * ROUND_BYTES]
    assert sock.taken == 5 * ROUND_BYTES
    assert outbox.unsent == 0
    disk.close()


def test_a_reply_from_very_many_files_holds_a_bounded_number_of_descriptors(run: Run, tmp_path: Path) -> None:
    content = pattern(COPIED_RANGE_BYTES + 1)
    disk, file = file_of(tmp_path, content)
    count = 3 * PINS_AHEAD

    async def scenario() -> None:
        watched = [WatchedRange(file, 0, len(content)) for _ in range(count)]
        service = Replying(lambda body: [(count * len(content)).to_bytes(4, "big"), *watched])
        async with site(service) as place:
            client = await place.connect()
            await client.ask(b"everything")
            await service.arrived(1)
            most = 0
            received = bytearray()
            while len(received) < 4 + count * len(content):
                received += await client.take(min(100_000, 4 + count * len(content) - len(received)))
                most = max(most, sum(each.pins for each in watched))
            assert received[4:] == content * count
            assert 0 < most <= PINS_AHEAD + 1
            await rounds()
            assert [each.pins for each in watched] == [0] * count

    run(scenario())
    disk.close()


def test_many_slow_readers_of_one_file_all_get_it(run: Run, tmp_path: Path) -> None:
    content = pattern(LARGE // 4)
    disk, file = file_of(tmp_path, content)

    async def scenario() -> None:
        service = Replying(lambda body: [len(content).to_bytes(4, "big"), PlainRange(file, 0, len(content))])
        async with site(service) as place:
            clients = [await place.connect() for _ in range(10)]
            for client in clients:
                await client.ask(b"a")
            assert await asyncio.gather(*(client.reply() for client in clients)) == [content] * 10

    run(scenario())
    disk.close()


def test_connections_share_what_may_be_held_for_later(tmp_path: Path) -> None:
    content = pattern(COPIED_RANGE_BYTES + 1)
    disk, file = file_of(tmp_path, content)
    pool = PinPool(3)
    outboxes = [Outbox(pool), Outbox(pool)]
    prepared = [
        [outbox.prepare(WatchedRange(file, 0, len(content))) for _ in range(2)] for outbox in outboxes
    ]
    held = [[part.is_pinned for part in parts if isinstance(part, OutgoingRange)] for parts in prepared]
    assert held == [[True, True], [True, False]]
    for outbox, parts in zip(outboxes, prepared, strict=True):
        outbox.release(parts)
    assert pool.left == 3
    disk.close()
