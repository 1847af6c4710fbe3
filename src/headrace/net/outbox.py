"""What waits to be sent on one connection: bytes and file ranges, in order.

It sends as much as the socket takes, but no more than a fair share at a time, so that one fast reader of a
huge range does not starve the others."""

import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from headrace.net.ranges import OutgoingRange, read_range
from headrace.ports import BytesLike
from headrace.protocol.fields import FileRange, RecordData

ROUND_BYTES: Final = 2 * 1024 * 1024
JOINED_BYTES: Final = 128 * 1024
#: Up to this size, copying into one send is cheaper than a descriptor and a call of its own.
COPIED_RANGE_BYTES: Final = 32 * 1024
#: How many ranges of a connection are pinned ahead of their turn; the others are pinned when it comes.
PINS_AHEAD: Final = 64
PINS_AHEAD_IN_ALL: Final = 16_384

Outgoing: TypeAlias = BytesLike | OutgoingRange

_MORE: Final = getattr(socket, "MSG_MORE", 0)
_BUFFERS: Final = frozenset({bytes, bytearray, memoryview})


class PinPool:
    """How many ranges of all connections may be pinned ahead of their turn: each takes a descriptor."""

    __slots__ = ("left",)

    def __init__(self, size: int = PINS_AHEAD_IN_ALL) -> None:
        self.left = size


class Outbox:
    """A queue of bytes and ranges. `unsent` counts the bytes of both, and of replies not in it yet."""

    __slots__ = ("_pins", "_pool", "_queue", "_ranges", "put", "unsent")

    def __init__(self, pool: PinPool | None = None) -> None:
        self._pool = pool or PinPool()
        self._queue: deque[Outgoing] = deque()
        #: Queues the prepared parts of a reply.
        self.put: Callable[[Sequence[Outgoing]], None] = self._queue.extend
        self._ranges = 0
        self._pins = 0
        self.unsent = 0

    def __bool__(self) -> bool:
        return bool(self._queue)

    def prepare(self, part: RecordData) -> Outgoing:
        """What to queue for a part of a reply. Ranges become safe from what happens to their files."""
        if type(part) in _BUFFERS:
            return part  # type: ignore[return-value]
        source: FileRange = part  # type: ignore[assignment]
        if len(source) <= COPIED_RANGE_BYTES:
            return read_range(source)
        outgoing = OutgoingRange(source)
        if self._pins < PINS_AHEAD and self._pool.left > 0:
            self._pin(outgoing)
        self._ranges += 1
        return outgoing

    def release(self, parts: Sequence[Outgoing]) -> None:
        """Give back what prepared parts hold."""
        for part in parts:
            if type(part) is OutgoingRange:
                self._ranges -= 1
                if part.is_pinned:
                    part.release()
                    self._pins -= 1
                    self._pool.left += 1

    def clear(self) -> None:
        """Forget what was not sent."""
        self.release(self._queue)
        self._queue.clear()
        self.unsent = 0

    def send(self, sock: socket.socket) -> bool:
        """Send this round's share. Whether the queue is empty now; if not, go on when the socket is ready."""
        queue = self._queue
        left = ROUND_BYTES
        try:
            if self._ranges == 0 and self.unsent <= JOINED_BYTES:
                return self._send_all(sock)
            while queue and left > 0:
                head = queue[0]
                if type(head) is not OutgoingRange:
                    left -= self._send_bytes(sock)
                    continue
                if not head.is_pinned:
                    self._pin(head)
                wanted = head.left if head.left < left else left
                sent = head.send(sock, wanted)
                self.unsent -= sent
                left -= sent
                if head.left == 0:
                    queue.popleft()
                    self.release((head,))
                elif sent < wanted:
                    # The socket is full: asking again would only be told so.
                    return False
        except (BlockingIOError, InterruptedError):
            return False
        return not queue

    def _send_all(self, sock: socket.socket) -> bool:
        """The usual case: a few bytes in all."""
        queue = self._queue
        # There is no range among them.
        data: BytesLike = queue[0] if len(queue) == 1 else b"".join(queue)  # type: ignore[arg-type,assignment]
        sent = sock.send(data)
        queue.clear()
        self.unsent -= sent
        if sent < len(data):
            queue.append(memoryview(data)[sent:])
            return False
        return True

    def _send_bytes(self, sock: socket.socket) -> int:
        queue = self._queue
        data: BytesLike
        if len(queue) > 1 and type(queue[1]) is OutgoingRange:
            data = queue.popleft()  # type: ignore[assignment] # it is no range
        else:
            data = self._joined()
        try:
            sent = sock.send(data, _MORE) if queue else sock.send(data)
        except (BlockingIOError, InterruptedError):
            queue.appendleft(data)
            raise
        self.unsent -= sent
        if sent < len(data):
            queue.appendleft(memoryview(data)[sent:])
            raise BlockingIOError
        return sent

    def _joined(self) -> BytesLike:
        """The bytes at the head of the queue in one piece, up to a range or a piece too large to copy."""
        queue = self._queue
        pieces: list[BytesLike] = []
        size = 0
        while queue:
            piece = queue[0]
            if type(piece) is OutgoingRange or (pieces and size + len(piece) > JOINED_BYTES):  # type: ignore[arg-type]
                break
            pieces.append(queue.popleft())  # type: ignore[arg-type]
            size += len(piece)  # type: ignore[arg-type]
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _pin(self, outgoing: OutgoingRange) -> None:
        outgoing.pin()
        self._pins += 1
        self._pool.left -= 1
