"""Single requests to a node, for what common clients cannot ask."""

import socket
from typing import TypeVar

from headrace.protocol.message import Message
from tests.support_node import RawClient

PATIENCE_S = 60.0
M = TypeVar("M", bound=Message)


def ask(address: str, request: Message, version: int, response: type[M]) -> M:
    """Send a request on a connection of its own and return the reply."""
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as connection:
        return RawClient(connection).ask(request, version, response)
