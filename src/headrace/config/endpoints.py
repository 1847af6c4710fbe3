"""Addresses in configuration values: `host:port` and the `id@host:port` of quorum voters."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from headrace.config.refusals import InvalidConfig

WILDCARD_HOST = "0.0.0.0"

_HOST = r"[0-9a-zA-Z\-%._:]*"
_HOST_PORT = rf"(?:[0-9a-zA-Z\-%._]*://)?\[?({_HOST})\]?:([0-9]+)"
_VOTERS = "controller.quorum.voters"


class Address(NamedTuple):
    """A host and a port, unresolved."""

    host: str
    port: int


def host_and_port(text: str) -> Address | None:
    """The address in `host:port`, with brackets around an IPv6 host or not; None if it is not one."""
    match = re.fullmatch(_HOST_PORT, text, re.ASCII)
    return Address(match[1], int(match[2])) if match else None


def is_host_text(text: str) -> bool:
    """Whether a text has only the characters of host names and IP addresses."""
    return re.fullmatch(_HOST, text, re.ASCII) is not None


def parse_voters(entries: Sequence[str], *, routable: bool = False) -> dict[int, Address]:
    """Voter ids and their addresses; with `routable`, the wildcard address is refused."""
    voters: dict[int, Address] = {}
    for entry in entries:
        voter, address = _parse_voter(entry)
        if routable and address.host == WILDCARD_HOST:
            raise InvalidConfig(f"Host string ({address.host}) is not routeable", key=_VOTERS)
        voters[voter] = address
    return voters


def _parse_voter(entry: str) -> tuple[int, Address]:
    form = "Each entry should be in the form `{id}@{host}:{port}`."
    parts = entry.split("@")
    if len(parts) != 2 or not parts[1]:
        raise InvalidConfig(f"Invalid configuration value for {_VOTERS}. {form}", key=_VOTERS)
    if not re.fullmatch(r"[+-]?[0-9]+", parts[0], re.ASCII):
        raise InvalidConfig(f"Failed to parse voter ID as an integer from {parts[0]}", key=_VOTERS)
    address = host_and_port(parts[1])
    if address is None:
        where = f"Failed to parse host name from entry {entry} for the configuration {_VOTERS}"
        raise InvalidConfig(f"{where}. {form}", key=_VOTERS)
    return int(parts[0]), address
