"""One connection: order, pipelining, time-outs, cancellation, and peers that misbehave."""

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from headrace.net.addresses import Address
from headrace.net.client_connection import ClientConnection
from headrace.net.client_errors import ConnectionLost, DialFailed, RequestTimedOut
from headrace.net.dialing import dial, first_to_succeed
from headrace.protocol.fields import RecordData
from tests.client.conftest import Run
from tests.support_client import HOST, soon

LONG_MS = 60_000
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def request(body: bytes = b"") -> Callable[[int], list[RecordData]]:
    """A frame of a correlation id and something behind it."""
    return lambda correlation_id: [struct.pack(">ii", 4 + len(body), correlation_id), body]


async def read(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    frame = await reader.readexactly(size)
    return int.from_bytes(frame[:4], "big"), frame[4:]


def reply(correlation_id: int, body: bytes = b"") -> bytes:
    return struct.pack(">ii", 4 + len(body), correlation_id) + body


@asynccontextmanager
async def connection_to(serve: Serve, in_flight_max: int = 10) -> AsyncIterator[ClientConnection]:
    """A connection to a server that does `serve` with it."""
    handlers: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        handlers.add(task)
        try:
            await serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            return
        finally:
            writer.close()

    server = await asyncio.start_server(accept, HOST, 0)
    port = server.sockets[0].getsockname()[1]
    sock = await dial(Address(HOST, port), LONG_MS, -1, -1)
    connection = ClientConnection(asyncio.get_running_loop(), sock, "peer", in_flight_max)
    try:
        yield connection
    finally:
        connection.close("the test is over")
        server.close()
        for task in handlers:
            task.cancel()
        await asyncio.gather(*handlers, return_exceptions=True)


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        correlation_id, body = await read(reader)
        writer.write(reply(correlation_id, body))


def body_of(frame: memoryview) -> bytes:
    return bytes(frame[4:])


def test_many_requests_at_once_each_get_their_own_reply(run: Run) -> None:
    async def test() -> None:
        async with connection_to(echo, in_flight_max=7) as connection:
            bodies = [b"%d" % number * (number % 50) for number in range(500)]
            asked = [connection.ask(request(body), "X", LONG_MS) for body in bodies]
            assert [body_of(frame) for frame in await soon(asyncio.gather(*asked))] == bodies

    run(test())


@pytest.mark.parametrize("size", [0, 1, 65_531, 65_532, 65_533, 65_536, 65_540, 200_000, 900_000])
def test_replies_of_any_size_arrive_whole_with_others_around_them(run: Run, size: int) -> None:
    async def test() -> None:
        async with connection_to(echo) as connection:
            bodies = [b"before", bytes(range(256)) * (size // 256) + b"x" * (size % 256), b"behind", b""]
            asked = [connection.ask(request(body), "X", LONG_MS) for body in bodies]
            assert [body_of(frame) for frame in await soon(asyncio.gather(*asked))] == bodies

    run(test())


def test_no_more_requests_are_under_way_than_the_limit(run: Run) -> None:
    async def test() -> None:
        seen: list[int] = []
        go_on = asyncio.Event()
        two = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while True:
                correlation_id, _ = await read(reader)
                seen.append(correlation_id)
                if len(seen) == 2:
                    two.set()
                    await go_on.wait()
                    assert not await _anything_more(reader)
                    for each in seen:
                        writer.write(reply(each))
                if len(seen) > 2:
                    writer.write(reply(correlation_id))

        async with connection_to(serve, in_flight_max=2) as connection:
            asked = [connection.ask(request(), "X", LONG_MS) for _ in range(6)]
            await soon(two.wait())
            go_on.set()
            await soon(asyncio.gather(*asked))
            assert len(seen) == 6

    async def _anything_more(reader: asyncio.StreamReader) -> bool:
        try:
            async with asyncio.timeout(0.05):
                await reader.readexactly(1)
        except TimeoutError:
            return False
        return True

    run(test())


def test_a_cancelled_request_leaves_the_connection_in_step(run: Run) -> None:
    async def test() -> None:
        go_on = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            first, _ = await read(reader)
            second, body = await read(reader)
            await go_on.wait()
            writer.write(reply(first, b"dropped" * 20_000) + reply(second, body))
            await echo(reader, writer)

        async with connection_to(serve) as connection:
            waiting = asyncio.ensure_future(connection.ask(request(b"a"), "X", LONG_MS))
            other = connection.ask(request(b"b"), "X", LONG_MS)
            await asyncio.sleep(0)
            waiting.cancel()
            go_on.set()
            assert body_of(await soon(other)) == b"b"
            assert body_of(await soon(connection.ask(request(b"c"), "X", LONG_MS))) == b"c"
            assert not connection.closed

    run(test())


def test_a_request_cancelled_before_its_turn_is_never_sent(run: Run) -> None:
    async def test() -> None:
        seen: list[bytes] = []
        go_on = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while True:
                correlation_id, body = await read(reader)
                seen.append(body)
                await go_on.wait()
                writer.write(reply(correlation_id))

        async with connection_to(serve, in_flight_max=1) as connection:
            first = connection.ask(request(b"1"), "X", LONG_MS)
            second = connection.ask(request(b"2"), "X", LONG_MS)
            third = connection.ask(request(b"3"), "X", LONG_MS)
            await asyncio.sleep(0)
            second.cancel()
            go_on.set()
            await soon(asyncio.gather(first, third))
            assert seen == [b"1", b"3"]

    run(test())


def test_a_reply_that_does_not_come_in_time_ends_the_connection(run: Run) -> None:
    async def test() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()

        async with connection_to(serve) as connection:
            late = connection.ask(request(), "Fetch", 30)
            other = connection.ask(request(), "Metadata", LONG_MS)
            with pytest.raises(RequestTimedOut, match="peer did not answer Fetch within 30 ms"):
                await soon(late)
            with pytest.raises(ConnectionLost, match="did not answer Fetch"):
                await soon(other)
            assert connection.closed
            with pytest.raises(ConnectionLost):
                await connection.ask(request(), "Metadata", LONG_MS)

    run(test())


def test_a_request_that_never_left_times_out_without_harm(run: Run) -> None:
    async def test() -> None:
        go_on = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            correlation_id, _ = await read(reader)
            await go_on.wait()
            writer.write(reply(correlation_id))
            await echo(reader, writer)

        async with connection_to(serve, in_flight_max=1) as connection:
            first = connection.ask(request(), "X", LONG_MS)
            await asyncio.sleep(0)
            with pytest.raises(RequestTimedOut):
                await soon(connection.ask(request(), "X", 10))
            go_on.set()
            await soon(first)
            assert body_of(await soon(connection.ask(request(b"on"), "X", LONG_MS))) == b"on"

    run(test())


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"", "the broker closed it$"),
        (b"\x00\x00", "the broker closed it in the middle of a reply"),
        (reply(0, b"half")[:9], "in the middle of a reply"),
        (reply(7), "answered request 7 when 0 was to be answered"),
        (struct.pack(">i", 2) + b"ab", "nobody asked for"),
        (struct.pack(">i", -1), "announced a size of -1"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "answers in HTTP"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "speaks TLS"),
        (struct.pack(">i", 2**30), "is this the address of a Kafka broker"),
    ],
)
def test_whatever_is_no_reply_ends_the_connection_with_the_reason(run: Run, sent: bytes, reason: str) -> None:
    async def test() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await read(reader)
            writer.write(sent)
            await writer.drain()

        async with connection_to(serve) as connection:
            with pytest.raises(ConnectionLost, match=reason):
                await soon(connection.ask(request(), "X", LONG_MS))

    run(test())


def test_a_reply_that_nobody_asked_for_ends_the_connection(run: Run) -> None:
    async def test() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            correlation_id, _ = await read(reader)
            writer.write(reply(correlation_id) + reply(correlation_id + 1))
            await reader.read()

        async with connection_to(serve) as connection:
            await soon(connection.ask(request(), "X", LONG_MS))
            with pytest.raises(ConnectionLost, match="nobody asked for"):
                await soon(connection.ask(request(), "X", LONG_MS))

    run(test())


def test_a_request_that_cannot_be_written_concerns_nobody_else(run: Run) -> None:
    async def test() -> None:
        def broken(correlation_id: int) -> list[RecordData]:
            raise ValueError("no")

        async with connection_to(echo) as connection:
            bad = connection.ask(broken, "X", LONG_MS)
            good = connection.ask(request(b"fine"), "X", LONG_MS)
            with pytest.raises(ValueError, match="no"):
                await soon(bad)
            assert body_of(await soon(good)) == b"fine"

    run(test())


def test_a_request_without_a_reply_does_not_shift_the_others(run: Run) -> None:
    async def test() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while True:
                correlation_id, body = await read(reader)
                if body != b"quiet":
                    writer.write(reply(correlation_id, body))

        async with connection_to(serve) as connection:
            for number in range(20):
                await soon(connection.tell(request(b"quiet"), "Produce", LONG_MS))
                body = b"%d" % number
                assert body_of(await soon(connection.ask(request(body), "X", LONG_MS))) == body

    run(test())


def test_large_requests_go_out_while_replies_come_in(run: Run) -> None:
    async def test() -> None:
        async with connection_to(echo, in_flight_max=5) as connection:
            connection.trust()
            bodies = [bytes([number]) * 3_000_000 for number in range(6)]
            asked = [connection.ask(request(body), "X", LONG_MS) for body in bodies]
            for frame, body in zip(await soon(asyncio.gather(*asked)), bodies, strict=True):
                assert frame[4:] == body

    run(test())


def test_correlation_ids_wrap_around(run: Run) -> None:
    async def test() -> None:
        async with connection_to(echo) as connection:
            connection._last_id = 2**31 - 2
            for body in (b"last", b"first", b"second"):
                assert body_of(await soon(connection.ask(request(body), "X", LONG_MS))) == body

    run(test())


def test_an_address_that_nobody_listens_at_is_told_with_the_reason(run: Run) -> None:
    async def test() -> None:
        with pytest.raises(DialFailed, match=r"127\.0\.0\.1:1: .*refused"):
            await dial(Address(HOST, 1), LONG_MS, -1, -1)
        with pytest.raises(DialFailed, match=r"no-such-host\.invalid:1: the host name cannot be resolved"):
            await dial(Address("no-such-host.invalid", 1), LONG_MS, -1, -1)

    run(test())


def test_every_address_of_a_name_is_tried(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name with a dead address and a live one leads to the live one, in whichever order they come."""

    async def test() -> None:
        server = await asyncio.start_server(lambda _, writer: writer.close(), HOST, 0)
        port = server.sockets[0].getsockname()[1]

        async def resolve(loop: object, address: Address) -> list[tuple[int, object]]:
            return [(2, ("127.0.0.2", 1)), (2, ("127.0.0.3", 1)), (2, (HOST, port))]

        monkeypatch.setattr("headrace.net.dialing._resolve", resolve)
        sock = await dial(Address("several", 1), LONG_MS, -1, -1)
        assert sock.getpeername() == (HOST, port)
        sock.close()
        server.close()

    run(test())


def test_an_attempt_that_hangs_does_not_hold_up_the_next_one(run: Run) -> None:
    async def test() -> None:
        cancelled = asyncio.Event()

        async def hang() -> str:
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()
            return "never"

        async def work() -> str:
            return "done"

        assert await soon(first_to_succeed([hang, work], 0.001)) == "done"
        assert cancelled.is_set()

    run(test())


def test_what_comes_too_late_is_closed(run: Run) -> None:
    async def test() -> None:
        class Made:
            closed = False

            def close(self) -> None:
                self.closed = True

        late, go_on = Made(), asyncio.Event()

        async def stubborn() -> Made:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return late
            return Made()

        async def quick() -> Made:
            go_on.set()
            return Made()

        winner = await soon(first_to_succeed([stubborn, quick], 0.001))
        assert late.closed
        assert not winner.closed

    run(test())


def test_what_comes_too_late_is_closed_though_nobody_waits_for_it_any_more(run: Run) -> None:
    async def test() -> None:
        closed, told_to_stop, finish = asyncio.Event(), asyncio.Event(), asyncio.Event()

        class Made:
            def close(self) -> None:
                closed.set()

        async def stubborn() -> Made:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                told_to_stop.set()
                await finish.wait()
            return Made()

        waiting = asyncio.create_task(first_to_succeed([stubborn], 10))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        waiting.cancel()
        await soon(told_to_stop.wait())
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await soon(waiting)
        finish.set()
        await soon(closed.wait())

    run(test())


def test_if_all_attempts_fail_the_last_failure_is_told(run: Run) -> None:
    async def test() -> None:
        async def fail(number: int) -> None:
            raise OSError(f"failure {number}")

        with pytest.raises(OSError, match="failure 2"):
            await soon(first_to_succeed([lambda: fail(1), lambda: fail(2)], 10))

    run(test())
