"""What the network asks of whoever answers requests."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from headrace.net.connection import ServerConnection


class Shortcut(Protocol):
    """Knows some requests of one connection by their looks, and answers them without the usual way."""

    def answers(self, connection: "ServerConnection", frame: memoryview) -> bool:
        """Whether this request was one of them; if not, nothing has happened."""


class Service(Protocol):
    """Answers the requests of a listener's connections."""

    def on_frame(self, connection: "ServerConnection", frame: memoryview) -> None:
        """Handle one request, without its length. `frame` is only valid until this returns.

        Whoever owes a reply takes a slot with `connection.reserve()` before returning, and completes it now
        or later. An exception closes the connection."""
