"""The place of one reply among those of its connection: replies leave in the order of their requests."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from headrace.errors import HeadraceError
from headrace.net.outbox import Outgoing
from headrace.protocol.fields import RecordData

if TYPE_CHECKING:
    from headrace.net.connection import ServerConnection

NOTHING: Final[tuple[()]] = ()


class SlotAnswered(HeadraceError):
    """A request was answered twice."""


class Slot:
    """Taken with `connection.reserve()` when a request is handled; completed or discarded exactly once.

    If the connection closes first, `on_close` is called, so that whatever waits to answer can be dropped;
    answering all the same is harmless. `parts` belong to the connection."""

    __slots__ = ("connection", "on_close", "parts")

    def __init__(self, connection: "ServerConnection") -> None:
        self.connection = connection
        self.parts: Sequence[Outgoing] | None = None
        self.on_close: Callable[[], None] | None = None

    @property
    def is_answered(self) -> bool:
        """Whether the slot was completed or discarded."""
        return self.parts is not None

    def complete(self, parts: Sequence[RecordData]) -> None:
        """Send these, one after the other, once all earlier replies are gone. They may change no more."""
        if self.parts is not None:
            raise SlotAnswered(f"a request of {self.connection} was answered twice")
        size = 0
        for part in parts:
            if type(part) is not bytes:
                self.connection._answer_prepared(self, parts)
                return
            size += len(part)
        self.parts = parts  # type: ignore[assignment]
        self.connection._on_answered(self, size)

    def discard(self) -> None:
        """There is no reply to this request."""
        self.complete(NOTHING)
