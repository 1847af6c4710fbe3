"""Changes of a resource's configuration: set, delete, append, subtract. Pure functions over texts.

A controller applies operations with `altered`, key by key. A broker that is asked to change brokers first
applies them with `altered_on_broker`, whose rules for lists and whose words differ a little.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from headrace.config.definition import ConfigKey
from headrace.config.keys.broker import BROKER_KEYS
from headrace.config.keys.topic import TOPIC_KEYS
from headrace.config.refusals import InvalidConfig, invalid_request
from headrace.config.values import Kind, render

VALUE_LENGTH_MAX: Final = 32_767


class ResourceType(IntEnum):
    """What a configuration belongs to, by its code on the wire."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Operation(IntEnum):
    """What is done to one key, by its code on the wire."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    """One operation on one key. A DELETE needs no value."""

    name: str
    operation: int
    value: str | None


def check_changes(changes: Sequence[Change]) -> None:
    """Refuse changes that make no sense for any resource: a key twice, or a missing value."""
    names = [change.name for change in changes]
    if len(set(names)) != len(names):
        raise invalid_request("Error due to duplicate config keys")
    empty = [c.name for c in changes if c.value is None and c.operation != Operation.DELETE]
    if empty:
        raise invalid_request(f"Null value not supported for : {', '.join(empty)}")


def altered(
    resource: ResourceType, current: Mapping[str, str], changes: Iterable[Change]
) -> dict[str, str | None]:
    """The new text of each changed key, None for a deleted one, as a controller records it."""
    result: dict[str, str | None] = {}
    for name, code, value in changes:
        operation = _operation(code)
        if operation is Operation.DELETE:
            result[name] = None
        elif operation is Operation.SET:
            result[name] = value
        else:
            result[name] = _altered_list(resource, operation, name, value or "", current.get(name))
        if len(result[name] or "") > VALUE_LENGTH_MAX:
            limit = f"it exceeds the maximum value size of {VALUE_LENGTH_MAX} bytes."
            raise InvalidConfig(f"The configuration value cannot be added because {limit}", key=name)
    return result


def merged(current: Mapping[str, str], new: Mapping[str, str | None]) -> dict[str, str]:
    """A resource's texts after the changes that `altered` returned."""
    both: dict[str, str | None] = {**current, **new}
    return {name: text for name, text in both.items() if text is not None}


def altered_on_broker(current: Mapping[str, str], changes: Iterable[Change]) -> dict[str, str]:
    """A broker's texts after the changes, as the broker that was asked checks them."""
    result = dict(current)
    for name, code, value in changes:
        match _operation(code):
            case Operation.SET:
                result[name] = value or ""
            case Operation.DELETE:
                result.pop(name, None)
            case operation:
                result[name] = _altered_broker_list(operation, name, value or "", result.get(name))
    return result


def _operation(code: int) -> Operation:
    try:
        return Operation(code)
    except ValueError:
        raise invalid_request(f"Unknown operations type {code}") from None


def _altered_list(
    resource: ResourceType, operation: Operation, name: str, value: str, current: str | None
) -> str:
    key = _list_key(resource, name)
    if key is None:
        reason = f"Can't {operation.name} to key {name} because its type is not LIST."
        raise InvalidConfig(reason, key=name)
    text = render(key.default) if current is None else current
    entries = [entry for entry in (text or "").split(",") if entry]
    given = split_like_java(value)
    if operation is Operation.SUBTRACT:
        return ",".join(_subtracted(entries, given))
    known = set(entries)
    return ",".join(entries + [entry for entry in dict.fromkeys(given) if entry not in known])


def _subtracted(entries: list[str], given: list[str]) -> list[str]:
    """The entries without those given; one that is there twice has to be given twice to be gone."""
    times = Counter(given)
    left = []
    for entry in entries:
        if times[entry]:
            times[entry] -= 1
        else:
            left.append(entry)
    return left


def _list_key(resource: ResourceType, name: str) -> ConfigKey | None:
    """The key if it is a list. Kafka 4.3.1 knows lists of brokers and topics only, and so do we."""
    tables = {ResourceType.BROKER: BROKER_KEYS, ResourceType.TOPIC: TOPIC_KEYS}
    key = tables.get(resource, {}).get(name)
    return key if key is not None and key.kind is Kind.LIST else None


def _altered_broker_list(operation: Operation, name: str, value: str, current: str | None) -> str:
    key = BROKER_KEYS.get(name)
    if key is None:
        raise InvalidConfig(f"Unknown config name: {name}", key=name)
    if key.kind is not Kind.LIST:
        verb = operation.name.lower()
        raise InvalidConfig(f"Config value {verb} is not allowed for config key: {name}", key=name)
    text = (render(key.default) if current is None else current) or ""
    entries = split_like_java(text) if text or operation is Operation.SUBTRACT else []
    given = split_like_java(value)
    if operation is Operation.APPEND:
        known = set(entries)
        return ",".join(entries + [entry for entry in given if entry not in known])
    return ",".join(_subtracted(entries, given))


def split_like_java(text: str) -> list[str]:
    """A text split at commas, without the empty parts at the end."""
    parts = text.split(",")
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return [] if parts == [""] and text else parts
