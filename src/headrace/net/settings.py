"""What a listener's connections are held to, in the terms of server.properties."""

from collections.abc import Mapping
from dataclasses import dataclass

LEAVE_TO_SYSTEM = -1
UNSENT_BYTES_MAX = 1024 * 1024


@dataclass(slots=True, frozen=True)
class ConnectionSettings:
    """Bounds and socket options of every connection of a listener.

    `requests_outstanding_max` bounds the requests of one connection that wait for their reply, and
    `unsent_bytes_max` what its client has not taken yet: beyond either, no more requests are read from it.
    """

    request_bytes_max: int = 104_857_600
    requests_outstanding_max: int = 500
    unsent_bytes_max: int = UNSENT_BYTES_MAX
    send_buffer_bytes: int = 102_400
    receive_buffer_bytes: int = 102_400
    backlog: int = 50

    @classmethod
    def of(cls, values: Mapping[str, object]) -> "ConnectionSettings":
        """From configuration values, as `NodeConfig.for_listener` gives them."""
        return cls(
            request_bytes_max=_integer(values, "socket.request.max.bytes"),
            requests_outstanding_max=_integer(values, "queued.max.requests"),
            send_buffer_bytes=_integer(values, "socket.send.buffer.bytes"),
            receive_buffer_bytes=_integer(values, "socket.receive.buffer.bytes"),
            backlog=_integer(values, "socket.listen.backlog.size"),
        )


def _integer(values: Mapping[str, object], key: str) -> int:
    value = values[key]
    if not isinstance(value, int):
        raise TypeError(f"{key} is {type(value).__name__}, not int")
    return value
