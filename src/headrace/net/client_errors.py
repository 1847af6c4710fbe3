"""What can happen to a request on its way to a broker and back, whatever it asks for."""

from headrace.errors import HeadraceError


class ConnectionLost(HeadraceError):
    """The connection ended before the reply came: the broker may or may not have done what was asked."""

    def __init__(self, peer: str, reason: str) -> None:
        super().__init__(f"the connection to {peer} was lost: {reason}")
        self.peer = peer
        self.reason = reason


class RequestTimedOut(HeadraceError):
    """No reply came in time. The connection was closed, since a late reply would be taken for another's."""

    def __init__(self, peer: str, what: str, timeout_ms: int) -> None:
        super().__init__(
            f"{peer} did not answer {what} within {timeout_ms} ms; is the broker overloaded or stopped? "
            "request.timeout.ms sets how long to wait"
        )
        self.peer = peer
        self.what = what
        self.timeout_ms = timeout_ms


class DialFailed(HeadraceError):
    """No connection could be made to an address; the message says what was tried and what came of it."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"{address}: {reason}")
        self.address = address
        self.reason = reason
