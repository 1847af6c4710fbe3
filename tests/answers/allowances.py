"""The two things in which a node's answers may differ from the recordings beside ids, times and addresses.

A node announces only the APIs it serves, and describes keys of its own that Kafka does not have.
"""

from dataclasses import replace
from typing import Any

from tests.answers.catalogue import SERVED_KEYS
from tests.answers.session import Exchange

OWN_KEY_PREFIX = "headrace."


def as_served(recorded: list[Exchange]) -> list[Exchange]:
    """The recorded exchanges with the announcement of what is served here."""
    return [_announcing(each) if each.api == "ApiVersions" else each for each in recorded]


def _announcing(exchange: Exchange) -> Exchange:
    reply = exchange.reply
    if not isinstance(reply, dict):
        return exchange
    keys = [each for each in reply["api_keys"] if each["api_key"] in SERVED_KEYS]
    return replace(exchange, reply=reply | {"api_keys": keys})


def without_own_keys(seen: list[Exchange]) -> list[Exchange]:
    """The exchanges of a node without the keys that Kafka does not have."""
    return [_without_own_keys(each) if each.api == "DescribeConfigs" else each for each in seen]


def _without_own_keys(exchange: Exchange) -> Exchange:
    reply = exchange.reply
    if not isinstance(reply, dict):
        return exchange
    results: list[dict[str, Any]] = [
        result
        | {"configs": [each for each in result["configs"] if not each["name"].startswith(OWN_KEY_PREFIX)]}
        for result in reply["results"]
    ]
    return replace(exchange, reply=reply | {"results": results})
