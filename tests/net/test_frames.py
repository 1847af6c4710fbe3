"""Requests are cut out of the stream wherever it is cut into packets, and sizes are refused unread."""

import asyncio
import logging
import socket
import struct
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.net.buffers import FIRST_BYTES, SCRATCH_BYTES, LargeFrame, ReceiveBuffers
from headrace.net.connection import FRAMES_PER_ROUND, SMALL_FRAME_BYTES
from headrace.net.settings import ConnectionSettings
from tests.support_net import Echo, Frames, Run, framed, pattern, rounds, site


def test_a_request_may_arrive_byte_by_byte(run: Run) -> None:
    async def scenario() -> None:
        service = Echo()
        async with site(service) as place:
            client = await place.connect()
            for byte in framed(b"hello") + framed(b"") + framed(b"world"):
                await client.send(bytes([byte]))
                await rounds(2)
            assert [await client.reply() for _ in range(3)] == [b"hello", b"", b"world"]

    run(scenario())


SIZES = st.one_of(
    st.integers(0, 200),
    st.integers(SMALL_FRAME_BYTES - 20, SMALL_FRAME_BYTES + 20),
    st.integers(FIRST_BYTES - 20, 3 * FIRST_BYTES),
    st.integers(SCRATCH_BYTES - 20, SCRATCH_BYTES + 20),
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sizes=st.lists(SIZES, max_size=12), cuts=st.lists(st.floats(0, 1), max_size=12))
def test_requests_come_out_as_they_went_in_however_the_stream_is_cut(
    run: Run, sizes: list[int], cuts: list[float]
) -> None:
    bodies = [pattern(size) for size in sizes]
    stream = b"".join(map(framed, bodies))
    places = sorted({0, len(stream), *(int(cut * len(stream)) for cut in cuts)})

    async def scenario() -> None:
        service = Frames()
        async with site(service) as place:
            client = await place.connect()
            for start, end in pairwise(places):
                await client.send(stream[start:end])
                await rounds(1)
            await service.arrived(len(bodies))
            assert service.seen == bodies
            assert place.listener.bytes_in == len(stream)
            assert place.listener.requests == len(bodies)

    run(scenario())


def test_many_requests_and_large_ones_behind_each_other_are_answered_in_order(run: Run) -> None:
    bodies = [bytes([65 + index % 7]) * (index * 37 % 90_000) for index in range(2 * FRAMES_PER_ROUND)]

    async def scenario() -> None:
        async with site(Echo()) as place:
            client = await place.connect()

            async def take_all() -> list[bytes]:
                return [await client.reply() for _ in bodies]

            taken, _ = await asyncio.gather(take_all(), client.ask(*bodies))
            assert taken == bodies

    run(scenario())


@pytest.mark.parametrize("size", [-1, -(2**31), 1001, 2**31 - 1])
def test_an_impossible_size_is_refused_before_anything_of_it_is_read(
    run: Run, size: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        service = Echo()
        async with site(service, ConnectionSettings(request_bytes_max=1000)) as place:
            client = await place.connect()
            await client.send(framed(b"sound") + struct.pack(">i", size))
            assert await client.rest() == framed(b"sound")
            assert service.seen == [b"sound"]
            assert place.network.connections == 0

    run(scenario())
    warnings = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 1
    assert str(size) in warnings[0].getMessage()
    assert "127.0.0.1" in warnings[0].getMessage()


def test_an_impossible_size_among_very_many_requests_is_refused_as_well(run: Run) -> None:
    async def scenario() -> None:
        service = Echo()
        async with site(service) as place:
            client = await place.connect()
            sound = framed(b"s") * (FRAMES_PER_ROUND + 1)
            await client.send(sound + struct.pack(">i", -5) + b"rest")
            assert await client.rest() == sound

    run(scenario())


def test_the_largest_allowed_request_is_served(run: Run) -> None:
    async def scenario() -> None:
        async with site(Echo(), ConnectionSettings(request_bytes_max=1000)) as place:
            client = await place.connect()
            await client.ask(b"x" * 1000)
            assert await client.reply() == b"x" * 1000

    run(scenario())


def test_memory_for_a_large_request_grows_with_what_arrived_not_with_what_was_announced() -> None:
    near, far = socket.socketpair()
    with near, far:
        near.setblocking(False)
        far.setblocking(False)
        size = 100_000_000
        frame = LargeFrame(ReceiveBuffers(), size, memoryview(struct.pack(">i", size - 4)))
        assert len(frame._buffer) <= FIRST_BYTES
        arrived = 4
        for _ in range(50):
            near.send(b"x" * 10_000)
            while (count := _received(frame, far)) > 0:
                arrived += count
        assert frame.filled == arrived == 500_004
        assert len(frame._buffer) <= 2 * arrived


def _received(frame: LargeFrame, sock: socket.socket) -> int:
    try:
        return frame.receive(sock)
    except BlockingIOError:
        return 0


def test_buffers_of_large_requests_are_used_again_and_let_go_when_not_needed() -> None:
    buffers = ReceiveBuffers()
    first = buffers.take(50_000)
    buffers.give_back(first)
    assert buffers.take(40_000) is first
    buffers.give_back(first)
    assert buffers.spare_bytes == 50_000
    buffers.trim()
    assert buffers.spare_bytes == 50_000
    buffers.trim()
    assert buffers.spare_bytes == 0


def test_spare_buffers_are_bounded() -> None:
    buffers = ReceiveBuffers()
    for _ in range(100):
        buffers.give_back(bytearray(1_000_000))
    buffers.give_back(bytearray(100_000_000))
    assert buffers.spare_bytes <= 8_000_000


@pytest.mark.parametrize("beginning", [b"\x00", framed(b"half a request")[:9], framed(b"x" * 9000)[:5000]])
def test_a_client_that_leaves_in_the_middle_of_a_request_is_noted(
    run: Run, beginning: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "headrace.net")

    async def scenario() -> None:
        async with site(Frames()) as place:
            client = await place.connect()
            await client.send(beginning)
            await place.accepted(1)
            client.close()
            await place.open_connections(0)

    run(scenario())
    assert "in the middle of a request" in caplog.text


def test_a_client_that_leaves_between_requests_is_not_worth_a_line(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with site(Echo()) as place:
            client = await place.connect()
            await client.ask(b"a")
            assert await client.reply() == b"a"
            client.close()
            await place.open_connections(0)

    with caplog.at_level(logging.INFO, "headrace.net"):
        run(scenario())
    assert [record for record in caplog.records if "closing" in record.getMessage()] == []
