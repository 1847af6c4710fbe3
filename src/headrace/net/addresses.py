"""Addresses of brokers as users write them: `host:port`, `[::1]:9092`, `PLAINTEXT://host:port`."""

from typing import Final, NamedTuple

_PORT_MAX: Final = 65_535
_SCHEME: Final = "PLAINTEXT://"


class Address(NamedTuple):
    """A host and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """The address that a text names; ValueError says what is wrong with it."""
    rest = text.strip()
    scheme, mark, behind = rest.partition("://")
    if mark:
        if scheme.upper() + mark != _SCHEME:
            raise ValueError(f"the only protocol is PLAINTEXT, not {scheme}")
        rest = behind
    if rest.startswith("["):
        host, closing, port = rest[1:].partition("]")
        if not closing or not port.startswith(":"):
            raise ValueError("an IPv6 address is written [address]:port")
        port = port[1:]
    else:
        host, colon, port = rest.rpartition(":")
        if not colon:
            raise ValueError("the port is missing")
        if ":" in host:
            raise ValueError("an IPv6 address is written [address]:port")
    if not host:
        raise ValueError("the host is missing")
    if not port.isascii() or not port.isdigit() or not 0 < int(port) <= _PORT_MAX:
        raise ValueError(f"the port is a number from 1 to {_PORT_MAX}")
    return Address(host, int(port))
