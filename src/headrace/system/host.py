"""The name that this machine has for others."""

import socket


def local_host_name() -> str:
    """The full name of this machine, for addresses that name none; it may have to ask the name service."""
    return socket.getfqdn()
