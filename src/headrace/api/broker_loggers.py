"""The node's loggers as a resource that can be described and altered, in the words of Kafka's levels.

Levels are those of Python's loggers and last until the process ends. A logger without one shows the level it
inherits; taking a level away makes it inherit again.
"""

import logging
from collections.abc import Iterable
from typing import Final

from headrace.api.node_ids import node_id_of
from headrace.config.alteration import Change, Operation
from headrace.errors import ErrorCode, KafkaError

ROOT: Final = "root"
_LEVELS: Final = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": 5,
}
#: What is always there to be altered, whether something was logged yet or not.
_OWN: Final = "headrace"

logger: Final = logging.getLogger("headrace.api")


def levels() -> dict[str, str]:
    """Every logger with the level that holds for it."""
    known = [
        name for name, found in logging.root.manager.loggerDict.items() if isinstance(found, logging.Logger)
    ]
    names = sorted({_OWN, *known})
    return {name: _shown(_logger(name).getEffectiveLevel()) for name in (ROOT, *names)}


def alter(resource_name: str, own_id: int, changes: Iterable[Change], *, validate_only: bool) -> None:
    """Set levels or take them away; refused as a whole if one change can't be made."""
    asked = node_id_of(resource_name)
    if asked is None:
        raise _refused(f"Node id must be an integer, but it is: {resource_name}")
    if asked != own_id:
        raise _refused(f"Unexpected node id. Expected {own_id}, but received {asked}")
    checked = list(changes)
    for change in checked:
        _check(change)
    if validate_only:
        return
    for change in checked:
        if change.operation == Operation.SET:
            _logger(change.name).setLevel(_LEVELS[change.value or ""])
            logger.warning("the level of logger %s is %s now", change.name, change.value)
        else:
            _logger(change.name).setLevel(logging.NOTSET)
            logger.warning("logger %s has no level of its own any more", change.name)


def _check(change: Change) -> None:
    resource = "is not allowed for the BROKER_LOGGER resource"
    if change.operation in (Operation.APPEND, Operation.SUBTRACT):
        raise _refused(f"{Operation(change.operation).name} operation {resource}")
    if change.operation not in (Operation.SET, Operation.DELETE):
        raise _refused(f"Unknown operation type {change.operation} {resource}")
    if change.name not in levels():
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {change.name} does not exist!")
    if change.operation == Operation.SET and change.value not in _LEVELS:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Cannot set the log level of {change.name} to {change.value} as it is not a supported log level."
            f" Valid log levels are {', '.join(sorted(_LEVELS))}",
        )
    if change.operation == Operation.DELETE and change.name == ROOT:
        raise _refused(f"Removing the log level of the {ROOT} logger is not allowed")


def _refused(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(None if name == ROOT else name)


def _shown(level: int) -> str:
    """Kafka's name for a level: the least severe one that lets the same messages pass."""
    return next((name for name, number in _LEVELS.items() if level >= number), "TRACE")
