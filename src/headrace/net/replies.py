"""Replies cut out of what is received: small ones copied from a shared buffer, large ones received in place.

A large reply gets a buffer of exactly its size and the rest of it is received straight into that, so that
its records can be read where they are."""

import socket
import struct
from typing import Final

from headrace.errors import HeadraceError

SIZE_BYTES: Final = 4
SCRATCH_BYTES: Final = 64 * 1024
#: Before a peer has shown that it speaks the protocol, it gets no more memory than this.
FIRST_REPLY_BYTES_MAX: Final = 1024 * 1024
REPLY_BYTES_MAX: Final = 1024 * 1024 * 1024

_read_size = struct.Struct(">i").unpack_from
_HTTP: Final = int.from_bytes(b"HTTP", "big")
_TLS_RECORDS: Final = (0x15, 0x16)


class NotAReply(HeadraceError):
    """What was received cannot be a reply."""


class ReplyReceiver:
    """Receives from a socket and hands out whole replies, without their length."""

    __slots__ = ("_beginning", "_filled", "_large", "_scratch", "bytes_max", "is_amid_reply")

    def __init__(self) -> None:
        self.bytes_max = FIRST_REPLY_BYTES_MAX
        self._scratch = memoryview(bytearray(SCRATCH_BYTES))
        self._beginning = 0
        self._large: bytearray | None = None
        self._filled = 0
        self.is_amid_reply = False

    def receive(self, sock: socket.socket) -> list[memoryview] | None:
        """Receive once. The replies that are complete now; None at the end of the stream.

        BlockingIOError if there was nothing, NotAReply if the peer speaks something else."""
        if self._large is not None:
            return self._receive_large(sock, self._large)
        count = sock.recv_into(self._scratch[self._beginning :])
        if count == 0:
            return None
        return self._cut(self._beginning + count)

    def _receive_large(self, sock: socket.socket, large: bytearray) -> list[memoryview] | None:
        # What comes behind the reply goes to the scratch buffer in the same call.
        with memoryview(large) as whole, whole[self._filled :] as rest:
            wanted = len(rest)
            count = sock.recvmsg_into([rest, self._scratch])[0]
        if count == 0:
            return None
        self._filled += min(count, wanted)
        if self._filled < len(large):
            return []
        self._large = None
        replies = [memoryview(large)]
        replies += self._cut(count - wanted)
        return replies

    def _cut(self, end: int) -> list[memoryview]:
        """The replies in the scratch buffer; what is left of it is kept."""
        scratch = self._scratch
        replies: list[memoryview] = []
        position = 0
        while end - position >= SIZE_BYTES:
            (size,) = _read_size(scratch, position)
            if not 0 <= size <= self.bytes_max:
                raise NotAReply(_what_it_is(size, bytes(scratch[position : position + SIZE_BYTES])))
            start = position + SIZE_BYTES
            if start + size > end:
                if size > len(scratch) - SIZE_BYTES:
                    self._begin_large(size, scratch[start:end])
                    self.is_amid_reply = True
                    self._beginning = 0
                    return replies
                break
            replies.append(memoryview(bytes(scratch[start : start + size])))
            position = start + size
        self._beginning = end - position
        if position:
            scratch[: self._beginning] = bytes(scratch[position:end])
        self.is_amid_reply = self._beginning > 0
        return replies

    def _begin_large(self, size: int, beginning: memoryview) -> None:
        self._large = bytearray(size)
        self._filled = len(beginning)
        self._large[: self._filled] = beginning


def _what_it_is(size: int, start: bytes) -> str:
    if size == _HTTP:
        return "the peer answers in HTTP; is this the address of a Kafka broker?"
    if start[0] in _TLS_RECORDS and start[1] == 3:
        return "the peer speaks TLS, which this client does not have yet; use a PLAINTEXT listener"
    return f"a reply announced a size of {size} bytes; is this the address of a Kafka broker?"
