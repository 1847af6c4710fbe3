"""In what a node's answers may differ from the recordings beside ids, times and addresses.

A node announces only the APIs it serves, and describes keys of its own that Kafka does not have. Where it
must not do as Kafka does, the exchange is listed with the reason.
"""

from dataclasses import replace
from typing import Any

from tests.answers.catalogue import SERVED_KEYS
from tests.answers.recording import differences
from tests.answers.session import Exchange

OWN_KEY_PREFIX = "headrace."
#: By scenario and exchange: why the answer is another one. An entry that no longer holds fails its scenario.
DEVIATIONS: dict[str, dict[str, str]] = {
    "consumers.unknown_groups": {
        "joining what can't be read": "Kafka fails where a length points beyond the end; here it is told why"
    },
    "frames.broken_bodies": {
        "a negative count": "Kafka reads any negative count as null; here only -1 is null, the rest malformed"
    },
    "produce.jumping_offsets": {
        "as they came": "Kafka stores offsets that do not count up; consumers would stumble over them"
    },
}


def unexpected(scenario: str, recorded: list[Exchange], seen: list[Exchange]) -> list[str]:
    """Every difference that nothing allows, and every deviation that is none."""
    listed = DEVIATIONS.get(scenario, {})
    found = []
    for at, exchange in enumerate(recorded):
        differing = differences([exchange], without_own_keys(seen[at : at + 1]))
        if exchange.about not in listed:
            found += [f"{at}: {each}" for each in differing]
        elif not differing:
            found.append(f"{at}: {exchange.about} deviates no more")
    if len(seen) > len(recorded):
        found.append(f"{len(recorded)} exchanges are recorded, {len(seen)} were made")
    return found


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
