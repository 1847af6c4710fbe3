"""Listeners: the `NAME://host:port` of a node, and which security protocol each name speaks."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from headrace.config.endpoints import is_host_text
from headrace.config.refusals import InvalidConfig
from headrace.config.values import shown_in_error


class SecurityProtocol(IntEnum):
    """How a listener's connections are secured, by the code that registrations carry."""

    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3


@dataclass(slots=True, frozen=True)
class Endpoint:
    """One listener. A host of None means every interface."""

    name: str
    protocol: SecurityProtocol
    host: str | None
    port: int

    @property
    def config_prefix(self) -> str:
        """The prefix of keys that concern this listener only."""
        return f"listener.name.{self.name.lower()}."

    def __str__(self) -> str:
        host = self.host or ""
        return f"{self.name}://{f'[{host}]' if ':' in host else host}:{self.port}"


def listener_name(text: str) -> str:
    """A listener's name in its normal form."""
    if not text.strip():
        raise InvalidConfig("The provided listener name is null or empty string")
    return text.upper()


def security_protocol(text: str, key: str) -> SecurityProtocol:
    """The protocol of that name, in capitals or not."""
    try:
        return SecurityProtocol[text.upper()]
    except KeyError:
        raise InvalidConfig(f"Invalid security protocol `{text}` defined in {key}", key=key) from None


def parse_pairs(key: str, text: str) -> dict[str, str]:
    """A text of `name:value` pairs separated by commas; the last colon of a pair separates."""
    pairs: dict[str, str] = {}
    for entry in re.split(r"\s*,\s*", text) if text else ():
        name, colon, value = entry.rpartition(":")
        if not colon:
            reason = f"'{entry}' is not of the form name:value"
            raise InvalidConfig(f"Error parsing configuration property '{key}': {reason}", key=key)
        pairs[name.strip()] = value.strip()
    return pairs


def parse_protocol_map(text: str) -> dict[str, SecurityProtocol]:
    """The value of `listener.security.protocol.map`."""
    key = "listener.security.protocol.map"
    protocols: dict[str, SecurityProtocol] = {}
    for name, protocol in parse_pairs(key, text).items():
        normal = listener_name(name)
        if normal in protocols:
            raise InvalidConfig(f"Listener {normal} is named twice in {key}", key=key)
        protocols[normal] = security_protocol(protocol, key)
    return protocols


def parse_listeners(
    entries: Sequence[str],
    protocols: Mapping[str, SecurityProtocol],
    *,
    key: str = "listeners",
    distinct_ports: bool = True,
) -> tuple[Endpoint, ...]:
    """The endpoints of a list of listeners, each with a name and (for `listeners`) a port of its own."""
    shown = shown_in_error(tuple(entries))
    try:
        endpoints = tuple(_parse_listener(entry, protocols) for entry in entries)
        if len({endpoint.name for endpoint in endpoints}) != len(endpoints):
            raise InvalidConfig(f"Each listener must have a different name, listeners: {shown}")
        if distinct_ports:
            _check_ports(endpoints, shown)
    except InvalidConfig as problem:
        message = f"Error creating broker listeners from '{shown}': {problem.message}"
        raise InvalidConfig(message, key=key, value=shown) from None
    return endpoints


def _parse_listener(entry: str, protocols: Mapping[str, SecurityProtocol]) -> Endpoint:
    match = re.fullmatch(r"(.*)://\[?([^\[\]/]*)\]?:(-?[0-9]+)", entry)
    if match is None or not is_host_text(match[2]):
        raise InvalidConfig(f"Unable to parse {entry} to a broker endpoint")
    name = listener_name(match[1])
    if len(match[3]) > 6 or not 0 <= int(match[3]) <= 65535:
        raise InvalidConfig(f"Port {match[3]} of {entry} is not between 0 and 65535")
    if name not in protocols:
        raise InvalidConfig(f"No security protocol defined for listener {name}")
    return Endpoint(name, protocols[name], match[2] or None, int(match[3]))


def _check_ports(endpoints: Sequence[Endpoint], shown: str) -> None:
    by_port: dict[int, list[Endpoint]] = {}
    for endpoint in endpoints:
        if endpoint.port != 0:
            by_port.setdefault(endpoint.port, []).append(endpoint)
    for port, same in by_port.items():
        if len(same) > 1:
            _check_same_port(port, same, shown)


def _check_same_port(port: int, endpoints: Sequence[Endpoint], shown: str) -> None:
    """Two listeners may share a port only where one has an IPv4 address and the other an IPv6 address."""
    versions = [_ip_version(endpoint.host) for endpoint in endpoints]
    if versions.count(None) > 1:
        raise InvalidConfig(f"Each listener must have a different port, listeners: {shown}")
    addresses = [version for version in versions if version is not None]
    where = f"listeners: {shown}, port: {port}"
    if len(addresses) == 2:
        if set(addresses) != {4, 6} or None in versions:
            rule = "If you have two listeners on the same port then one needs to be IPv4 and the other IPv6"
            raise InvalidConfig(f"{rule}, {where}")
        return
    rule = "Each listener must have a different port unless exactly one listener has an IPv4 address"
    raise InvalidConfig(f"{rule} and the other IPv6 address, {where}")


def _ip_version(host: str | None) -> int | None:
    import ipaddress  # only listeners that share a port need it

    try:
        return ipaddress.ip_address(host).version if host else None
    except ValueError:
        return None
