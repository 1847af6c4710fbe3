"""One client's connection: requests are cut out of what is received, replies leave in their order.

It works on the loop's readiness callbacks rather than on asyncio's transports. A request that waits does not
hold up the next one; but a client that does not take its replies, or has too many requests waiting, is not
read from until that changes. The service sees `reserve`, `close` and the attributes of the client only."""

import logging
import socket
import struct
from collections import deque
from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final

from headrace.errors import HeadraceError
from headrace.net.buffers import LargeFrame
from headrace.net.outbox import Outbox, Outgoing
from headrace.net.service import Shortcut
from headrace.net.slots import NOTHING, Slot
from headrace.protocol.fields import RecordData

if TYPE_CHECKING:
    from headrace.net.listener import Listener

SIZE_BYTES: Final = 4
#: Requests of one connection that are handled before others get their turn.
FRAMES_PER_ROUND: Final = 128
#: The beginning of a request no larger than this is kept as it is and joined with what follows.
SMALL_FRAME_BYTES: Final = 4096

_read_size = struct.Struct(">i").unpack_from

logger = logging.getLogger("headrace.net")


class ServerConnection:
    """A client, as a service knows it. `client_id` and the software are set by who reads requests."""

    __slots__ = (
        "_beginning",
        "_close_callbacks",
        "_closing",
        "_is_flush_due",
        "_is_halted",
        "_is_held",
        "_is_in_round",
        "_is_reading",
        "_is_starved",
        "_is_writing",
        "_large",
        "_network",
        "_on_frame",
        "_outbox",
        "_outstanding_max",
        "_request_bytes_max",
        "_slots",
        "_socket",
        "_unsent_bytes_max",
        "_waiting",
        "active_tick",
        "client_id",
        "close_reason",
        "closed",
        "due_tick",
        "listener",
        "peer_host",
        "peer_port",
        "shortcut",
        "software_name",
        "software_version",
    )

    def __init__(self, listener: "Listener", sock: socket.socket, peer_host: str, peer_port: int) -> None:
        self.listener = listener
        self.peer_host = peer_host
        self.peer_port = peer_port
        self.client_id: str | None = None
        self.software_name = "unknown"
        self.software_version = "unknown"
        #: Whatever the service keeps to answer requests of this client more quickly.
        self.shortcut: Shortcut | None = None
        self.closed = False
        self.close_reason: str | None = None
        self._network = listener.network
        self.active_tick = self._network.idle.tick
        self.due_tick = 0
        self._socket = sock
        self._on_frame = listener.service.on_frame
        self._request_bytes_max = listener.settings.request_bytes_max
        self._outstanding_max = listener.settings.requests_outstanding_max
        self._unsent_bytes_max = listener.settings.unsent_bytes_max
        self._outbox = Outbox(self._network.pins)
        self._slots: deque[Slot] = deque()
        self._close_callbacks: list[Callable[[], None]] = []
        # What was received and not handed over: the beginning of a small or of a large request, or whole
        # requests that have to wait (and what came behind them).
        self._beginning = b""
        self._large: LargeFrame | None = None
        self._waiting: memoryview | None = None
        self._is_halted = False
        self._is_in_round = False
        self._is_flush_due = False
        self._is_writing = False
        self._closing: tuple[str, int] | None = None
        self._is_reading = True
        self._is_starved = False
        self._is_held = False
        self._network.loop.add_reader(sock, self._on_readable)

    def __str__(self) -> str:
        return f"{self.peer_host}:{self.peer_port} on {self.listener.name}"

    @property
    def listener_name(self) -> str:
        """The name of the listener that the client came through."""
        return self.listener.name

    @property
    def peer(self) -> str:
        """The client's address, as Kafka writes it in its logs."""
        return f"/{self.peer_host}"

    @property
    def requests_outstanding(self) -> int:
        """Requests whose reply did not leave yet, or waits behind one that did not."""
        return len(self._slots)

    @property
    def unsent_bytes(self) -> int:
        """Bytes of replies, ranges of files included, that the socket did not take yet."""
        return self._outbox.unsent

    # For services

    def reserve(self) -> Slot:
        """The place for the reply to the request being handled."""
        slot = Slot(self)
        slots = self._slots
        slots.append(slot)
        if len(slots) >= self._outstanding_max:
            self._is_halted = True
        return slot

    def answer(self, reply: bytes) -> None:
        """Answer the request being handled at once: `reserve` and `complete` in one step."""
        if self._slots or self.closed:
            self.reserve().complete((reply,))
            return
        outbox = self._outbox
        outbox.put((reply,))
        outbox.unsent += len(reply)
        if outbox.unsent > self._unsent_bytes_max:
            self._is_halted = True

    def answer_parts(self, parts: Sequence[RecordData]) -> None:
        """The same for a reply in parts, some of which may be file ranges."""
        if self._slots or self.closed:
            self.reserve().complete(parts)
        elif (prepared := self._prepared(parts)) is not None:
            outbox = self._outbox
            outbox.put(prepared)
            outbox.unsent += sum(map(len, parts))
            if outbox.unsent > self._unsent_bytes_max:
                self._is_halted = True

    def hold(self) -> None:
        """Hand over no further requests until `release`: one that takes long must not be overtaken."""
        self._is_held = self._is_halted = True

    def release(self) -> None:
        """Go on with the requests that follow."""
        self._is_held = False
        if not self.closed:
            self._regulate()

    def when_closed(self, callback: Callable[[], None]) -> None:
        """Call back once when the connection closes, for whatever reason."""
        if self.closed:
            callback()
        else:
            self._close_callbacks.append(callback)

    def close(self, reason: str, level: int = logging.WARNING) -> None:
        """Close at once and say why in the log. What was not sent is lost."""
        if self.closed:
            return
        self.closed = self._is_halted = True
        if self._closing is not None and self._closing[0] != reason:
            reason = f"{self._closing[0]}; {reason}"
            level = max(level, self._closing[1])
        # What a client sent may be quoted in it, and must not pass for lines of ours.
        self.close_reason = reason = " ".join(reason.splitlines())
        logger.log(level, "closing connection of %s (client id %r): %s", self, self.client_id, reason)
        self._pause_reading()
        self._network.loop.remove_writer(self._socket)
        self._socket.close()
        self._beginning = b""
        self._waiting = None
        if self._large is not None and not self._is_in_round:
            self._drop_large()
        self._outbox.clear()
        self.listener.on_closed(self)
        self._tell_that_closed()

    def close_when_sent(self, reason: str, level: int = logging.WARNING) -> None:
        """Handle no more requests, and close once the replies that can be sent are gone."""
        if self.closed or self._closing is not None:
            return
        self._is_halted = True
        self._waiting = None
        self._closing = (reason, level)
        self._pause_reading()
        self._flush()
        if not self._outbox:
            self.close(reason, level)

    # Receiving

    def _on_readable(self) -> None:
        if self._is_halted:
            self._on_readable_halted()
            return
        if self._waiting is not None:
            return
        network = self._network
        started = perf_counter_ns()
        scratch = network.buffers.scratch
        large = self._large
        try:
            if large is not None:
                count = large.receive(self._socket)
            elif self._beginning:
                count = self._receive_behind(scratch)
            else:
                count = self._socket.recv_into(scratch)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self.close(f"receiving failed: {error}", logging.INFO)
            return
        if count == 0:
            self._on_peer_closed()
            return
        self.listener.bytes_in += count
        self.active_tick = network.idle.tick
        received = perf_counter_ns()
        self._is_in_round = True
        if large is None:
            self._handle(scratch, count + len(self._beginning))
        elif large.is_complete:
            self._handle_large(large)
        handled = perf_counter_ns()
        self._end_round()
        load = network.load
        load.network_ns += received - started + perf_counter_ns() - handled
        load.handler_ns += handled - received

    def _on_readable_halted(self) -> None:
        """Pause only when something comes: most clients wait for their reply and would pay for nothing."""
        if not self._is_writing and self._has_peer_closed():
            self._on_peer_closed()
        else:
            self._pause_reading()

    def _has_peer_closed(self) -> bool:
        try:
            return not self._socket.recv(1, socket.MSG_PEEK)
        except OSError:
            return False

    def _receive_behind(self, scratch: memoryview) -> int:
        """Receive behind what is there already of a small request."""
        beginning = self._beginning
        scratch[: len(beginning)] = beginning
        return self._socket.recv_into(scratch[len(beginning) :])

    def _handle(self, view: memoryview, end: int) -> None:
        self._beginning = b""
        position = self._hand_over(view, end)
        if position < end and self._closing is None and not self.closed:
            self._keep(view[position:end], is_lasting=False)

    def _handle_large(self, large: LargeFrame) -> None:
        behind = large.filled - large.size
        self._hand_over(large.view, large.size)
        self._drop_large()
        if behind and self._closing is None and not self.closed:
            scratch = self._network.buffers.scratch
            if self._is_halted:
                self._waiting = memoryview(bytes(scratch[:behind]))
            else:
                self._handle(scratch, behind)

    def _drop_large(self) -> None:
        if self._large is not None:
            self._large.release()
            self._large = None

    def _hand_over(self, view: memoryview, end: int) -> int:
        """Have the whole requests handled, in order; returns where the first one begins that was not."""
        on_frame = self._on_frame
        position = handled = 0
        try:
            while end - position >= SIZE_BYTES and handled < FRAMES_PER_ROUND:
                (size,) = _read_size(view, position)
                if not 0 <= size <= self._request_bytes_max:
                    self._refuse(size)
                    break
                start = position + SIZE_BYTES
                if start + size > end:
                    break
                position = start + size
                handled += 1
                on_frame(self, view[start:position])
                if self._is_halted:
                    break
        except Exception as error:  # noqa: BLE001 whatever a request provokes, it ends its connection only
            self._on_failure(error)
        self.listener.requests += handled
        return position

    def _refuse(self, size: int) -> None:
        if size < 0:
            self.close_when_sent(f"a request announced a size of {size}")
        else:
            self.close_when_sent(f"a request of {size} bytes is larger than {self._request_bytes_max}")

    def _on_failure(self, error: Exception) -> None:
        logger.debug("a request of %s failed", self, exc_info=error)
        self.close_when_sent(f"a request failed: {type(error).__name__}: {error}")

    def _keep(self, rest: memoryview, *, is_lasting: bool) -> None:
        """Keep what was received and not handed over until it can be."""
        size = SIZE_BYTES
        if len(rest) >= SIZE_BYTES:
            size += _read_size(rest)[0]
        if self._is_halted or not len(rest) < size <= self._request_bytes_max + SIZE_BYTES:
            self._waiting = rest if is_lasting else memoryview(bytes(rest))
        elif size <= SMALL_FRAME_BYTES:
            self._beginning = bytes(rest)
        elif self._network.buffers.has_room:
            self._large = LargeFrame(self._network.buffers, size, rest)
        else:
            self._waiting = rest if is_lasting else memoryview(bytes(rest))
            self._is_starved = self._is_halted = True
            self._network.buffers.when_room(self._on_room)

    def _on_room(self) -> None:
        """There is memory for large requests again."""
        self._is_starved = False
        if not self.closed:
            self._regulate()

    def _continue(self) -> None:
        """Go on with requests that had to wait."""
        waiting = self._waiting
        if waiting is None:
            return
        if self._is_halted:
            self._pause_reading()
            return
        started = perf_counter_ns()
        self._waiting = None
        self._is_in_round = True
        position = self._hand_over(waiting, len(waiting))
        if position < len(waiting) and self._closing is None and not self.closed:
            self._keep(waiting[position:], is_lasting=True)
        self._network.load.handler_ns += perf_counter_ns() - started
        self._end_round()

    def _end_round(self) -> None:
        self._is_in_round = False
        if self.closed:
            self._drop_large()
            return
        self._flush()
        if self._waiting is not None and not self._is_halted:
            self._network.loop.call_soon(self._continue)

    def _on_peer_closed(self) -> None:
        if self._beginning or self._large is not None:
            self.close("the client left in the middle of a request", logging.INFO)
        else:
            self.close("the client left", logging.DEBUG)

    def _pause_reading(self) -> None:
        if self._is_reading:
            self._is_reading = False
            self._network.loop.remove_reader(self._socket)

    def _regulate(self) -> None:
        """Read on if nothing speaks against it any more."""
        if (
            self._closing is not None
            or self._is_starved
            or self._is_held
            or len(self._slots) >= self._outstanding_max
            or self._outbox.unsent > self._unsent_bytes_max // 2
        ):
            return
        was_halted, self._is_halted = self._is_halted, False
        loop = self._network.loop
        if not self._is_reading:
            self._is_reading = True
            loop.add_reader(self._socket, self._on_readable)
        if was_halted and self._waiting is not None:
            loop.call_soon(self._continue)

    # Sending

    def _answer_prepared(self, slot: Slot, parts: Sequence[RecordData]) -> None:
        """Take a reply with parts that are not plain bytes."""
        if self.closed:
            slot.parts = NOTHING
        elif (prepared := self._prepared(parts, slot)) is not None:
            slot.parts = prepared
            self._on_answered(slot, sum(map(len, parts)))

    def _prepared(self, parts: Sequence[RecordData], slot: Slot | None = None) -> list[Outgoing] | None:
        """The parts as they are queued; None if one could not be read, and the connection is closed."""
        outbox = self._outbox
        prepared: list[Outgoing] = []
        try:
            for part in parts:
                prepared.append(outbox.prepare(part))  # noqa: PERF401 those before a failure are released
        except Exception as error:
            outbox.release(prepared)
            if not isinstance(error, OSError | HeadraceError):
                raise
            # The log says no to a range that was truncated or deleted; the client asks again.
            if slot is not None:
                slot.parts = NOTHING
            self.close(f"a reply could not be read: {error}")
            return None
        return prepared

    def _on_answered(self, slot: Slot, size: int) -> None:
        """Send the reply of a slot together with others of this round, unless earlier ones are missing."""
        if self.closed:
            slot.parts = NOTHING
            return
        outbox = self._outbox
        outbox.unsent += size
        if outbox.unsent > self._unsent_bytes_max:
            self._is_halted = True
        if not self._is_in_round and not self._is_flush_due and self._slots[0] is slot:
            self._is_flush_due = True
            self._network.flush_soon(self)

    def hurry(self) -> None:
        """Whoever calls this answers next and calls `flush_due` then, rather than at the end of the turn."""
        self._is_flush_due = True

    def flush_due(self) -> None:
        """Send what was answered since the last round of the loop."""
        self._is_flush_due = False
        if not self.closed and not self._is_in_round:
            self._flush()

    def _flush(self) -> None:
        slots = self._slots
        outbox = self._outbox
        put = outbox.put
        while slots and (parts := slots[0].parts) is not None:
            slots.popleft()
            put(parts)
        if not self._is_writing and outbox:
            self._send()
        elif self._is_halted:
            self._regulate()

    def _on_writable(self) -> None:
        started = perf_counter_ns()
        self._send()
        self._network.load.network_ns += perf_counter_ns() - started

    def _send(self) -> None:
        outbox = self._outbox
        unsent = outbox.unsent
        try:
            is_done = outbox.send(self._socket)
        except OSError as error:
            self.close(f"sending failed: {error}", logging.INFO)
            return
        except HeadraceError as error:
            self.close(f"a reply could not be sent: {error}")
            return
        self.listener.bytes_out += unsent - outbox.unsent
        if outbox.unsent != unsent:
            self.active_tick = self._network.idle.tick
        if is_done == self._is_writing:
            self._watch_writable(not is_done)
        if is_done and self._closing is not None:
            self.close(*self._closing)
        elif self._is_halted:
            self._regulate()

    def _watch_writable(self, wanted: bool) -> None:
        self._is_writing = wanted
        loop = self._network.loop
        if wanted:
            loop.add_writer(self._socket, self._on_writable)
        else:
            loop.remove_writer(self._socket)

    def _tell_that_closed(self) -> None:
        """Tell those who wait to answer, and those who asked, that it is of no use any more."""
        waiting = (slot.on_close for slot in self._slots if slot.parts is None)
        callbacks = [callback for callback in waiting if callback is not None]
        callbacks += self._close_callbacks
        for slot in self._slots:
            if slot.parts:
                self._outbox.release(slot.parts)
                slot.parts = NOTHING
        self._slots.clear()
        self._close_callbacks.clear()
        for callback in callbacks:
            try:
                callback()
            except Exception:
                logger.exception("what followed from the closing of %s failed", self)
