"""Memory for received bytes, shared by all connections of a process, so that an idle one holds none.

Small requests are handled where they were received, in one buffer for all. A request that arrives in pieces
and is large gets memory of its own, which grows with what was received and not by what was announced."""

import socket
from collections.abc import Callable
from typing import Final

SCRATCH_BYTES: Final = 256 * 1024
FIRST_BYTES: Final = 16 * 1024
SPARE_BUFFERS: Final = 8
SPARE_BUFFER_BYTES: Final = 4 * 1024 * 1024


class ReceiveBuffers:
    """The buffer that all connections receive into, and spare ones for large requests.

    `large_bytes_max` is how much may be announced by all large requests that are on their way in together;
    what comes then has to wait. One that began is always read to its end. 0 or less sets no bound."""

    __slots__ = ("_spare", "_waiting", "_was_used", "large_bytes", "large_bytes_max", "scratch")

    def __init__(self, large_bytes_max: int = 0) -> None:
        self.scratch = memoryview(bytearray(SCRATCH_BYTES))
        self.large_bytes = 0
        self.large_bytes_max = large_bytes_max
        self._spare: list[bytearray] = []
        self._waiting: list[Callable[[], None]] = []
        self._was_used = False

    @property
    def has_room(self) -> bool:
        """Whether another large request may begin."""
        return self.large_bytes < self.large_bytes_max or self.large_bytes_max <= 0

    def when_room(self, callback: Callable[[], None]) -> None:
        """Call back once when another large request may begin."""
        self._waiting.append(callback)

    def begin(self, size: int) -> None:
        """A large request is on its way in."""
        self.large_bytes += size

    def end(self, size: int) -> None:
        """A large request was handled, or its connection is gone."""
        self.large_bytes -= size
        while self._waiting and self.has_room:
            self._waiting.pop(0)()

    @property
    def spare_bytes(self) -> int:
        """Memory kept for the next large request."""
        return sum(map(len, self._spare))

    def take(self, size: int) -> bytearray:
        """A buffer for a large request that shall hold at least `size` bytes soon."""
        self._was_used = True
        if self._spare and len(self._spare[-1]) >= size:
            return self._spare.pop()
        return bytearray(size)

    def give_back(self, buffer: bytearray) -> None:
        """Keep a buffer for the next large request, unless there are plenty."""
        if len(self._spare) < SPARE_BUFFERS and len(buffer) <= SPARE_BUFFER_BYTES:
            self._spare.append(buffer)

    def trim(self) -> None:
        """Let go of spare buffers that were not needed since the last call."""
        if not self._was_used:
            self._spare.clear()
        self._was_used = False


class LargeFrame:
    """A request on its way in, length included. `filled` may pass `size` by what came behind it."""

    __slots__ = ("_buffer", "_buffers", "filled", "size")

    def __init__(self, buffers: ReceiveBuffers, size: int, start: memoryview) -> None:
        self._buffers = buffers
        buffers.begin(size)
        self.size = size
        self.filled = len(start)
        self._buffer = buffers.take(min(size, max(2 * self.filled, FIRST_BYTES)))
        self._buffer[: self.filled] = start

    @property
    def view(self) -> memoryview:
        """The whole request, once it is complete."""
        return memoryview(self._buffer)[: self.size]

    @property
    def is_complete(self) -> bool:
        """Whether all of the request is there."""
        return self.filled >= self.size

    def receive(self, sock: socket.socket) -> int:
        """Receive once; returns the bytes received, 0 at the end of the stream.

        What came behind the request is at the start of the scratch buffer."""
        room = min(len(self._buffer), self.size)
        if self.filled == room:
            room = self._grow()
        with memoryview(self._buffer) as whole, whole[self.filled : room] as rest:
            if room == self.size:
                count = sock.recvmsg_into([rest, self._buffers.scratch])[0]
            else:
                count = sock.recv_into(rest)
        self.filled += count
        return count

    def release(self) -> None:
        """Let others use the memory; nothing may look at `view` any more."""
        self._buffers.give_back(self._buffer)
        self._buffers.end(self.size)

    def _grow(self) -> int:
        room = min(self.size, 2 * self.filled)
        grown = self._buffers.take(room)
        grown[: self.filled] = self._buffer
        self._buffers.give_back(self._buffer)
        self._buffer = grown
        return min(len(grown), self.size)
