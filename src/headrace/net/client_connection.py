"""One connection to a broker, seen from the client: requests leave in order, replies come back in order.

It works on the loop's readiness callbacks rather than on asyncio's transports. Several requests may be under
way; those beyond the limit wait here. A reply that nobody waits for any more is received and dropped. A
request that is not answered in time ends the connection, since replies are told apart by their order.
"""

import asyncio
import logging
import socket
import struct
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from headrace.net.client_errors import ConnectionLost, RequestTimedOut
from headrace.net.outbox import Outbox
from headrace.net.replies import REPLY_BYTES_MAX, NotAReply, ReplyReceiver
from headrace.protocol.fields import RecordData

_CORRELATION_ID_MAX: Final = 2**31 - 1
_read_correlation_id = struct.Struct(">i").unpack_from

logger = logging.getLogger("headrace.net")

Build = Callable[[int], Sequence[RecordData]]


class _Asked:
    """A request that was or will be sent, and who waits for its reply."""

    __slots__ = ("build", "correlation_id", "expects_reply", "reply", "timeout_ms", "timer", "what")

    def __init__(self, reply: "asyncio.Future[memoryview]", build: Build, what: str, timeout_ms: int) -> None:
        self.reply = reply
        self.build = build
        self.what = what
        self.timeout_ms = timeout_ms
        self.expects_reply = True
        self.correlation_id = -1
        self.timer: asyncio.TimerHandle | None = None

    def settle(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class ClientConnection:
    """A connected socket, owned by this object from now on. Belongs to one event loop."""

    __slots__ = (
        "_in_flight",
        "_in_flight_max",
        "_is_flush_due",
        "_is_writing",
        "_last_id",
        "_loop",
        "_on_closed",
        "_outbox",
        "_queued",
        "_receiver",
        "_socket",
        "close_reason",
        "closed",
        "last_used",
        "peer",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        peer: str,
        in_flight_max: int,
        on_closed: "Callable[[ClientConnection], None] | None" = None,
    ) -> None:
        self.peer = peer
        self.closed = False
        self.close_reason = ""
        #: When something was last sent or received, in the loop's time.
        self.last_used = loop.time()
        self._loop = loop
        self._socket = sock
        self._in_flight_max = in_flight_max
        self._on_closed = on_closed
        self._in_flight: deque[_Asked] = deque()
        self._queued: deque[_Asked] = deque()
        self._outbox = Outbox()
        self._receiver = ReplyReceiver()
        self._last_id = -1
        self._is_writing = False
        self._is_flush_due = False
        loop.add_reader(sock, self._on_readable)

    @property
    def requests_outstanding(self) -> int:
        """Requests that were asked and not answered yet."""
        return len(self._in_flight) + len(self._queued)

    def trust(self) -> None:
        """The peer has shown that it is a broker: replies may be as large as they have to be."""
        self._receiver.bytes_max = REPLY_BYTES_MAX

    def ask(self, build: Build, what: str, timeout_ms: int) -> "asyncio.Future[memoryview]":
        """Send a request; the future is its reply's frame, without the length.

        `build` makes the frame's parts for a correlation id when its turn comes; `what` names the request in
        errors. The future may be cancelled: the reply is then dropped when it comes.
        """
        asked = _Asked(self._loop.create_future(), build, what, timeout_ms)
        self._submit(asked)
        return asked.reply

    def tell(self, build: Build, what: str, timeout_ms: int) -> "asyncio.Future[memoryview]":
        """Send a request that is not answered; the future is done, with nothing in it, when it is queued for
        sending in the order of the others."""
        asked = _Asked(self._loop.create_future(), build, what, timeout_ms)
        asked.expects_reply = False
        self._submit(asked)
        return asked.reply

    def close(self, reason: str) -> None:
        """Close at once. Requests under way end with ConnectionLost."""
        if self.closed:
            return
        self.closed = True
        self.close_reason = reason
        logger.debug("closing connection to %s: %s", self.peer, reason)
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._socket.close()
        self._outbox.clear()
        for asked in (*self._in_flight, *self._queued):
            asked.settle()
            if not asked.reply.done():
                asked.reply.set_exception(ConnectionLost(self.peer, reason))
        self._in_flight.clear()
        self._queued.clear()
        if self._on_closed is not None:
            self._on_closed(self)

    # Sending

    def _submit(self, asked: _Asked) -> None:
        if self.closed:
            asked.reply.set_exception(ConnectionLost(self.peer, self.close_reason))
            return
        asked.timer = self._loop.call_later(asked.timeout_ms / 1000, self._on_timeout, asked)
        self._queued.append(asked)
        self._flush_soon()

    def _flush_soon(self) -> None:
        """Send in this round of the loop, together with what else is asked in it."""
        if not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._is_flush_due = False
        if self.closed:
            return
        outbox = self._outbox
        while self._queued and len(self._in_flight) < self._in_flight_max:
            asked = self._queued.popleft()
            if asked.reply.cancelled():
                asked.settle()
            else:
                self._put(asked)
        if outbox and not self._is_writing:
            self._send()

    def _put(self, asked: _Asked) -> None:
        self._last_id = asked.correlation_id = (self._last_id + 1) & _CORRELATION_ID_MAX
        try:
            parts = asked.build(asked.correlation_id)
        except Exception as error:  # noqa: BLE001 a request that cannot be written concerns who asked only
            asked.settle()
            asked.reply.set_exception(error)
            return
        self._outbox.unsent += sum(map(len, parts))
        # Requests hold bytes, never ranges of files, so there is nothing to prepare.
        self._outbox.put(parts)  # type: ignore[arg-type]
        if asked.expects_reply:
            self._in_flight.append(asked)
        else:
            asked.settle()
            asked.reply.set_result(memoryview(b""))

    def _send(self) -> None:
        try:
            is_done = self._outbox.send(self._socket)
        except OSError as error:
            self.close(error.strerror or str(error))
            return
        self.last_used = self._loop.time()
        if is_done == self._is_writing:
            self._is_writing = not is_done
            if is_done:
                self._loop.remove_writer(self._socket)
            else:
                self._loop.add_writer(self._socket, self._send)

    # Receiving

    def _on_readable(self) -> None:
        try:
            replies = self._receiver.receive(self._socket)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self.close(error.strerror or str(error))
            return
        except NotAReply as error:
            self.close(str(error))
            return
        if replies is None:
            amid = " in the middle of a reply" if self._receiver.is_amid_reply else ""
            self.close(f"the broker closed it{amid}")
            return
        self.last_used = self._loop.time()
        for frame in replies:
            if not self._on_reply(frame):
                return
        if replies and self._queued:
            self._flush_soon()

    def _on_reply(self, frame: memoryview) -> bool:
        """Give a reply to who asked; whether the connection is still in step."""
        if len(frame) < 4 or not self._in_flight:
            self.close("the broker sent a reply that nobody asked for")
            return False
        (correlation_id,) = _read_correlation_id(frame)
        asked = self._in_flight[0]
        if correlation_id != asked.correlation_id:
            self.close(
                f"the broker answered request {correlation_id} when {asked.correlation_id} was to be answered"
            )
            return False
        self._in_flight.popleft()
        asked.settle()
        if not asked.reply.done():
            asked.reply.set_result(frame)
        return True

    def _on_timeout(self, asked: _Asked) -> None:
        asked.timer = None
        late = RequestTimedOut(self.peer, asked.what, asked.timeout_ms)
        if asked in self._queued:
            # It never left, so the connection is still in step.
            self._queued.remove(asked)
            if not asked.reply.done():
                asked.reply.set_exception(late)
            return
        reason = f"it did not answer {asked.what} within {asked.timeout_ms} ms"
        if not asked.reply.done():
            asked.reply.set_exception(late)
        self.close(reason)
