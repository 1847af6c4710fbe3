"""What a handler knows of the request at hand besides its content."""

from dataclasses import dataclass
from typing import Protocol


class ClientConnection(Protocol):
    """The connection that a request came in on, as far as handlers care."""

    def close(self, reason: str) -> None:
        """Hang up; the reason goes to the log."""

    def hold(self) -> None:
        """Let the requests that follow wait."""

    def release(self) -> None:
        """Go on with the requests that follow."""


@dataclass(slots=True)
class RequestContext:
    """One request. `listener` is the name of the listener it came in on, `peer` the client's address."""

    api_key: int
    version: int
    client_id: str | None
    listener: str
    peer: str
    connection: ClientConnection
