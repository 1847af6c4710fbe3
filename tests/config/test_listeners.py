"""Listener strings: names, hosts, ports and security protocols."""

import pytest

from headrace.config.listeners import Endpoint, SecurityProtocol, parse_listeners, parse_protocol_map
from headrace.config.refusals import InvalidConfig

PLAIN = SecurityProtocol.PLAINTEXT
PROTOCOLS = {"PLAINTEXT": PLAIN, "OTHER": PLAIN, "THIRD": PLAIN, "SSL": SecurityProtocol.SSL}


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        ("PLAINTEXT://:9092", Endpoint("PLAINTEXT", PLAIN, None, 9092)),
        ("plaintext://localhost:0", Endpoint("PLAINTEXT", PLAIN, "localhost", 0)),
        ("OTHER://[::1]:9092", Endpoint("OTHER", PLAIN, "::1", 9092)),
        ("OTHER://fe80::1%eth0:9092", Endpoint("OTHER", PLAIN, "fe80::1%eth0", 9092)),
        ("SSL://my_host.example:65535", Endpoint("SSL", SecurityProtocol.SSL, "my_host.example", 65535)),
    ],
)
def test_a_listener_has_a_name_a_host_and_a_port(text: str, endpoint: Endpoint) -> None:
    assert parse_listeners([text], PROTOCOLS) == (endpoint,)


def test_a_listener_is_written_as_it_is_read() -> None:
    for text in ("PLAINTEXT://:9092", "OTHER://[::1]:9092", "SSL://host:1"):
        assert str(parse_listeners([text], PROTOCOLS)[0]) == text


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (["nonsense"], "Unable to parse nonsense to a broker endpoint"),
        (["OTHER://host"], "Unable to parse OTHER://host to a broker endpoint"),
        (["OTHER://a b:1"], "Unable to parse OTHER://a b:1 to a broker endpoint"),
        (["OTHER://host:70000"], "Port 70000 of OTHER://host:70000 is not between 0 and 65535"),
        (["://host:1"], "The provided listener name is null or empty string"),
        (["NEW://host:1"], "No security protocol defined for listener NEW"),
        (["OTHER://a:1", "OTHER://b:2"], "Each listener must have a different name"),
        (["OTHER://a:1", "THIRD://b:1"], "Each listener must have a different port, listeners"),
        (["OTHER://1.1.1.1:1", "THIRD://2.2.2.2:1"], "one needs to be IPv4 and the other IPv6"),
        (["OTHER://1.1.1.1:1", "THIRD://[::1]:1", "SSL://:1"], "one needs to be IPv4 and the other IPv6"),
        (["OTHER://1.1.1.1:1", "THIRD://b:1"], "Each listener must have a different port unless"),
    ],
)
def test_listeners_that_cannot_be_are_refused(texts: list[str], reason: str) -> None:
    with pytest.raises(InvalidConfig) as refusal:
        parse_listeners(texts, PROTOCOLS)
    assert str(refusal.value).startswith(f"Error creating broker listeners from '[{', '.join(texts)}]': ")
    assert reason in str(refusal.value)
    assert refusal.value.key == "listeners"


def test_two_listeners_may_share_a_port_on_ipv4_and_ipv6_or_port_zero() -> None:
    assert len(parse_listeners(["OTHER://1.1.1.1:1", "THIRD://[::1]:1"], PROTOCOLS)) == 2
    assert len(parse_listeners(["OTHER://:0", "THIRD://:0"], PROTOCOLS)) == 2


def test_the_protocol_map_names_each_listener_once() -> None:
    assert parse_protocol_map("a:ssl, B:PLAINTEXT") == {"A": SecurityProtocol.SSL, "B": PLAIN}
    with pytest.raises(InvalidConfig, match="Invalid security protocol `tea` defined in"):
        parse_protocol_map("A:tea")
    with pytest.raises(InvalidConfig, match="Listener A is named twice"):
        parse_protocol_map("a:SSL,A:SSL")
    with pytest.raises(InvalidConfig, match="'A' is not of the form name:value"):
        parse_protocol_map("A")
