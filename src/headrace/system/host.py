"""The name that this machine has for others."""

import socket


def local_host_name() -> str:
    """The full name of this machine, for addresses that name none; it may have to ask the name service."""
    return socket.getfqdn()


def is_port_free(host: str, port: int) -> bool:
    """Whether a port can be listened on just now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
