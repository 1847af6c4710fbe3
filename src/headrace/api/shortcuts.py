"""The short ways of one connection: for what it produces and for what it fetches."""

from typing import TYPE_CHECKING

from headrace.api.fetch_shortcut import FetchMemory
from headrace.api.produce_shortcut import ProduceMemory

if TYPE_CHECKING:
    from headrace.net.connection import ServerConnection


class RequestMemory:
    """What is remembered of the requests of one connection."""

    __slots__ = ("fetch", "produce")

    def __init__(self) -> None:
        self.produce: ProduceMemory | None = None
        self.fetch: FetchMemory | None = None

    def answers(self, connection: "ServerConnection", frame: memoryview) -> bool:
        """Whether this was one of the usual requests: then it is taken care of."""
        produce, fetch = self.produce, self.fetch
        if produce is not None and produce.answers(connection, frame):
            return True
        return fetch is not None and fetch.answers(connection, frame)

    def forget(self) -> None:
        """Have every request go through its handler once more."""
        if self.produce is not None:
            self.produce.forget()
        if self.fetch is not None:
            self.fetch.forget()
