"""Keys of quotas: what a user, a client id or an IP address is held to, and a user's SCRAM credentials."""

from typing import Final

from headrace.config.definition import ConfigKey
from headrace.config.keys.notation import DOUBLE, INT, INT_MAX, LONG, LONG_MAX, MEDIUM, STRING, key
from headrace.config.rules import Range

_CLIENT = (
    key("producer_byte_rate", LONG, LONG_MAX, MEDIUM).means("Bytes in a second that producers may send."),
    key("consumer_byte_rate", LONG, LONG_MAX, MEDIUM).means("Bytes in a second that consumers may fetch."),
    key("request_percentage", DOUBLE, float(INT_MAX), MEDIUM).means(
        "Share of the node's time that requests may take, in percent."
    ),
    key("controller_mutation_rate", DOUBLE, float(INT_MAX), MEDIUM).means(
        "Partitions in a second that may be created or deleted."
    ),
)
_SCRAM = tuple(
    key(mechanism, STRING, None, MEDIUM).means(f"The user's credentials for {mechanism}.")
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
)
_ADDRESS = (
    key("connection_creation_rate", INT, INT_MAX, MEDIUM, Range(0)).means(
        "Connections in a second that may come from the address."
    ),
)

CLIENT_QUOTA_KEYS: Final[dict[str, ConfigKey]] = {key.name: key for key in _CLIENT}
USER_KEYS: Final[dict[str, ConfigKey]] = {key.name: key for key in (*_SCRAM, *_CLIENT)}
IP_QUOTA_KEYS: Final[dict[str, ConfigKey]] = {key.name: key for key in _ADDRESS}
