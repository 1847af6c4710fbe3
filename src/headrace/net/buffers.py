"""Memory for received bytes, shared by all connections of a process, so that an idle one holds none.

Small requests are handled where they were received, in one buffer for all. A request that arrives in pieces
and is large gets memory of its own, which grows with what was received and not by what was announced."""

import socket
from typing import Final

SCRATCH_BYTES: Final = 256 * 1024
FIRST_BYTES: Final = 16 * 1024
SPARE_BUFFERS: Final = 8
SPARE_BUFFER_BYTES: Final = 4 * 1024 * 1024


class ReceiveBuffers:
    """The buffer that all connections receive into, and spare ones for large requests."""

    __slots__ = ("_spare", "_was_used", "scratch")

    def __init__(self) -> None:
        self.scratch = memoryview(bytearray(SCRATCH_BYTES))
        self._spare: list[bytearray] = []
        self._was_used = False

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

    def _grow(self) -> int:
        room = min(self.size, 2 * self.filled)
        grown = self._buffers.take(room)
        grown[: self.filled] = self._buffer
        self._buffers.give_back(self._buffer)
        self._buffer = grown
        return min(len(grown), self.size)
