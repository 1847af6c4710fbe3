"""Cuts a stream of bytes into whole lines, keeping count of them."""

from typing import Final, NamedTuple

from headrace.errors import HeadraceError

LINE_END: Final = b"\n"


class BadLine(HeadraceError):
    """A line that can't be made a record."""

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(f"line {number}: {reason}")
        self.number = number
        self.reason = reason


class Lines(NamedTuple):
    """Whole lines one after the other, without the end of the last one, and the number of the first."""

    data: bytes
    first: int


class LineCutter:
    """Takes chunks and gives back the lines that are complete."""

    __slots__ = ("_length_max", "_next", "_pending", "_pending_length")

    def __init__(self, length_max: int) -> None:
        self._length_max = length_max
        self._next = 1
        self._pending: list[bytes] = []
        self._pending_length = 0

    def feed(self, chunk: bytes) -> Lines | None:
        """The lines that end in this chunk, if there are any."""
        cut = chunk.rfind(LINE_END)
        if cut < 0:
            self._keep(chunk)
            return None
        lines = self._take(chunk[:cut])
        self._keep(chunk[cut + 1 :])
        return lines

    def rest(self) -> Lines | None:
        """The last line, if the stream ended without ending it."""
        return self._take(b"") if self._pending_length else None

    def _take(self, data: bytes) -> Lines:
        whole = b"".join((*self._pending, data))
        self._pending.clear()
        self._pending_length = 0
        first = self._next
        self._next += whole.count(LINE_END) + 1
        return Lines(whole, first)

    def _keep(self, data: bytes) -> None:
        if not data:
            return
        self._pending.append(data)
        self._pending_length += len(data)
        if self._pending_length > self._length_max:
            raise BadLine(
                self._next,
                f"it is longer than max.request.size allows a record to be ({self._length_max} bytes); "
                "raise that with --config if the topic's max.message.bytes takes it",
            )
