"""The connection class beside asyncio's own means, on the same loop in the same server process.

Two loads: pipelined small requests that are echoed, and replies of 1 MB from a file. The client is a blocking
socket in another process; processor time is the server's, for its connection only, as one client runs at a
time. The asyncio side is as bare as it can be: it keeps order, but no limits, idle times or counters."""

import asyncio
import multiprocessing
import os
import socket
import struct
import tempfile
import time
from collections import deque
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import cast

import uvloop

from bench.harness import Row
from headrace.net.connection import ServerConnection
from headrace.net.listener import Listener
from headrace.net.network import Network
from headrace.system.clock import SystemClock
from headrace.system.disk import RealDisk, RealFile

SMALL_BYTES = 100
PIPELINED = 16
RANGE_BYTES = 1024 * 1024
FILE_BYTES = 64 * RANGE_BYTES
ROUNDS = 5
SECONDS = 0.4

SMALL_FRAME = struct.pack(">i", SMALL_BYTES) + b"s" * SMALL_BYTES
FETCH_FRAME = struct.pack(">i", 1) + b"f"
FETCH_HEAD = struct.pack(">i", RANGE_BYTES)


class Range:
    """A stretch of the file."""

    def __init__(self, file: RealFile, position: int) -> None:
        self.file = file
        self.position = position

    def __len__(self) -> int:
        return RANGE_BYTES


class Positions:
    """One 1 MB stretch after the other, round and round."""

    def __init__(self) -> None:
        self._next = 0

    def next(self) -> int:
        self._next = (self._next + RANGE_BYTES) % FILE_BYTES
        return self._next


class EchoService:
    """Echoes small requests and answers others with 1 MB."""

    def __init__(self, file: RealFile) -> None:
        self._file = file
        self._positions = Positions()

    def on_frame(self, connection: ServerConnection, frame: memoryview) -> None:
        slot = connection.reserve()
        if len(frame) == 1:
            slot.complete([FETCH_HEAD, Range(self._file, self._positions.next())])
        else:
            slot.complete([struct.pack(">i", len(frame)) + bytes(frame)])


class TransportSlot:
    """The place of a reply on a transport."""

    __slots__ = ("parts",)

    def __init__(self) -> None:
        self.parts: list[bytes] | None = None

    def complete(self, parts: list[bytes]) -> None:
        if self.parts is not None:
            raise ValueError("answered twice")
        self.parts = parts


class EchoProtocol(asyncio.BufferedProtocol):
    """The same on asyncio's transport: frames cut out of a reused buffer, replies in order and joined."""

    def __init__(self, file: RealFile, *, by_sendfile: bool) -> None:
        self._buffer = bytearray(256 * 1024)
        self._view = memoryview(self._buffer)
        self._filled = 0
        self._slots: deque[TransportSlot] = deque()
        self._file = file
        self._positions = Positions()
        self._by_sendfile = by_sendfile
        self._tasks: set[asyncio.Task[None]] = set()

    def reserve(self) -> TransportSlot:
        slot = TransportSlot()
        self._slots.append(slot)
        return slot

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._view[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        end = self._filled + nbytes
        position = 0
        while end - position >= 4:
            (size,) = struct.unpack_from(">i", self._buffer, position)
            if position + 4 + size > end:
                break
            self._on_frame(self._view[position + 4 : position + 4 + size])
            position += 4 + size
        self._view[: end - position] = self._view[position:end]
        self._filled = end - position
        self._flush()

    def _on_frame(self, frame: memoryview) -> None:
        if len(frame) == 1:
            self._fetch()
        else:
            self.reserve().complete([struct.pack(">i", len(frame)) + bytes(frame)])

    def _flush(self) -> None:
        replies: list[bytes] = []
        while self._slots and (parts := self._slots[0].parts) is not None:
            self._slots.popleft()
            replies += parts
        if replies:
            self._transport.write(b"".join(replies))

    def _fetch(self) -> None:
        if self._by_sendfile:
            task = asyncio.get_running_loop().create_task(self._send_file())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            self._transport.write(FETCH_HEAD + self._file.read_at(self._positions.next(), RANGE_BYTES))

    async def _send_file(self) -> None:
        self._transport.write(FETCH_HEAD)
        with self._file.pin() as descriptor, os.fdopen(descriptor, "rb", closefd=False) as source:
            loop = asyncio.get_running_loop()
            await loop.sendfile(self._transport, source, self._positions.next(), RANGE_BYTES)


def serve(control: Connection, path: str, *, on_uvloop: bool) -> None:
    """The server process: says its two ports, then its processor time whenever asked, until told to end."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        file = RealDisk().open(path)
        network = Network(loop, SystemClock())
        listener = Listener(network, "BENCH", "127.0.0.1", 0, EchoService(file))
        listener.start()
        server = await loop.create_server(
            lambda: EchoProtocol(file, by_sendfile=not on_uvloop), "127.0.0.1", 0
        )
        control.send((listener.port, server.sockets[0].getsockname()[1]))
        ended = loop.create_future()

        def on_control() -> None:
            if control.recv() == "cpu":
                control.send(time.process_time())
            else:
                ended.set_result(None)

        loop.add_reader(control.fileno(), on_control)
        await ended
        loop.remove_reader(control.fileno())
        server.close()
        await network.stop(100)

    (uvloop.run if on_uvloop else asyncio.run)(main())


class Client:
    """A blocking client of one of the two servers."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = memoryview(bytearray(RANGE_BYTES * 2))

    def echo(self) -> int:
        """Send and take a batch of small requests; returns how many."""
        self._socket.sendall(SMALL_FRAME * PIPELINED)
        self._take(len(SMALL_FRAME) * PIPELINED)
        return PIPELINED

    def fetch(self) -> int:
        """Ask for 1 MB; returns the bytes."""
        self._socket.sendall(FETCH_FRAME)
        self._take(4 + RANGE_BYTES)
        return RANGE_BYTES

    def close(self) -> None:
        self._socket.close()

    def _take(self, size: int) -> None:
        while size:
            count = self._socket.recv_into(self._buffer, size)
            if not count:
                raise EOFError("the server left")
            size -= count


def measure(call: Callable[[], int], cpu: Callable[[], float]) -> tuple[float, float]:
    """How much is done per second of time, and per second of the server's processor time."""
    done = 0
    cpu_started = cpu()
    started = time.perf_counter()
    while (elapsed := time.perf_counter() - started) < SECONDS:
        done += call()
    return done / elapsed, done / max(1e-6, cpu() - cpu_started)


def compare(label: str, *, on_uvloop: bool, theirs_fetch: str) -> list[Row]:
    """Both servers in turns."""
    context = multiprocessing.get_context("spawn")
    control, far_end = context.Pipe()
    with tempfile.NamedTemporaryFile() as file:
        file.truncate(FILE_BYTES)
        file.flush()
        os.sync()
        process = context.Process(target=serve, args=(far_end, file.name), kwargs={"on_uvloop": on_uvloop})
        process.daemon = True
        process.start()
        clients = [Client(port) for port in control.recv()]

        def cpu() -> float:
            control.send("cpu")
            return float(control.recv())

        best: dict[tuple[str, int], tuple[float, float]] = {}
        for _ in range(ROUNDS):
            for load in ("echo", "fetch"):
                for index, client in enumerate(clients):
                    rate, per_cpu = measure(getattr(client, load), cpu)
                    before = best.get((load, index), (0.0, 0.0))
                    best[load, index] = max(before[0], rate), max(before[1], per_cpu)
        for client in clients:
            client.close()
        control.send("end")
        process.join()
    return _rows(label, theirs_fetch, best)


def _rows(label: str, theirs_fetch: str, best: dict[tuple[str, int], tuple[float, float]]) -> list[Row]:
    rows = []
    for load, what, unit, scale, target in (
        ("echo", "pipelined requests vs BufferedProtocol", "k/s", 1e3, 1.0),
        ("fetch", f"1 MB ranges vs {theirs_fetch}", "MB/s", 1e6, 1.0),
    ):
        for kind, index in (("", 0), (", per second of CPU", 1)):
            ours, theirs = best[load, 0][index], best[load, 1][index]
            rows.append(
                Row(
                    f"{label}: {what}{kind}",
                    f"{ours / scale:.0f} {unit}",
                    f"{theirs / scale:.0f} {unit}",
                    ours / theirs,
                    target,
                )
            )
    return rows


def run() -> list[Row]:
    """All rows."""
    return compare("uvloop", on_uvloop=True, theirs_fetch="pread and transport.write") + compare(
        "asyncio", on_uvloop=False, theirs_fetch="loop.sendfile"
    )
