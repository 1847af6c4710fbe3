"""What a client is told when something does not work: what, where, and what to do about it.

A broker's own refusals are `BrokerRefused` with the code; the others are found out on this side.
"""

from collections.abc import Iterable, Mapping
from uuid import UUID

from headrace.errors import ErrorCode, HeadraceError
from headrace.net.client_errors import ConnectionLost, DialFailed, RequestTimedOut
from headrace.types import TopicPartition

__all__ = [
    "BrokerRefused",
    "ClientClosed",
    "ConfigRefused",
    "ConnectionLost",
    "CorruptRecords",
    "DeliveryFailed",
    "DialFailed",
    "NoLeader",
    "PositionDiverged",
    "PositionOutOfRange",
    "RequestTimedOut",
    "TopicRecreated",
    "UnknownTopics",
    "Unreachable",
    "UnsupportedByBroker",
    "error_name",
    "is_retriable",
]


def error_name(code: int) -> str:
    """Kafka's name of an error code, also of one that is newer than this client."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"


def is_retriable(code: int) -> bool:
    """Whether the same request may work later; codes newer than this client are taken to be final."""
    try:
        return ErrorCode(code).is_retriable
    except ValueError:
        return False


class ConfigRefused(HeadraceError):
    """A configuration that cannot be used: which key, and why."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key}: {reason}")
        self.key = key
        self.reason = reason


class ClientClosed(HeadraceError):
    """The cluster, reader or writer was closed; what was asked of it cannot be done any more."""


class Unreachable(HeadraceError):
    """No broker could be talked to, or not the one that is needed."""

    def __init__(self, what: str, attempts: Mapping[str, str] | None = None) -> None:
        tried = "".join(f"; {address}: {reason}" for address, reason in (attempts or {}).items())
        super().__init__(what + tried)
        self.attempts = dict(attempts or {})


class UnsupportedByBroker(HeadraceError):
    """The broker has no version of an API that this client could use."""

    def __init__(self, peer: str, api: str, reason: str) -> None:
        super().__init__(f"{peer} does not support {api}: {reason}")
        self.peer = peer
        self.api = api


class BrokerRefused(HeadraceError):
    """A broker said no: `code` is Kafka's error code, `where` what it was about."""

    def __init__(self, code: int, message: str | None, where: str) -> None:
        name = error_name(code)
        super().__init__(f"{where}: {name}" + (f": {message}" if message and message != name else ""))
        self.code = code
        self.message = message
        self.where = where

    @property
    def is_retriable(self) -> bool:
        """Whether the same may work later."""
        return is_retriable(self.code)


class UnknownTopics(HeadraceError):
    """Topics that the cluster does not have, or that this client may not know of."""

    def __init__(self, names: Iterable[str], waited_ms: int, known_similar: Mapping[str, str]) -> None:
        self.names = sorted(names)
        shown = ", ".join(
            f"{name!r} (did you mean {known_similar[name]!r}?)" if name in known_similar else repr(name)
            for name in self.names
        )
        noun = "topic" if len(self.names) == 1 else "topics"
        super().__init__(
            f"the cluster has no {noun} {shown} (waited {waited_ms} ms); create it, or check the spelling"
        )


class NoLeader(HeadraceError):
    """A partition that has no leader, or that does not exist, for longer than one wants to wait."""

    def __init__(self, topic: str, partition: int, waited_ms: int, reason: str) -> None:
        super().__init__(
            f"{topic}-{partition} has no leader to talk to after {waited_ms} ms ({reason}); "
            "are the brokers that hold it running?"
        )
        self.topic = topic
        self.partition = partition


class PositionOutOfRange(HeadraceError):
    """A position that the partition does not have (any more). Nothing was skipped."""

    def __init__(self, partition: TopicPartition, position: int, earliest: int, latest: int) -> None:
        lost = "has been deleted" if position < earliest else "is beyond the end"
        super().__init__(
            f"{partition}: offset {position} {lost}: the partition holds offsets {earliest} to {latest}; "
            "choose a position in that range"
        )
        self.partition = partition
        self.position = position
        self.earliest = earliest
        self.latest = latest


class PositionDiverged(HeadraceError):
    """The log was truncated below the position (an unclean election): records read before it are gone."""

    def __init__(
        self, partition: TopicPartition, position: int, position_epoch: int, diverged_at: int, epoch: int
    ) -> None:
        super().__init__(
            f"{partition}: the log was cut back to offset {diverged_at} (leader epoch {epoch}), below "
            f"position {position} that was read in leader epoch {position_epoch}; what was read from "
            f"{diverged_at} on is no longer in the log. Go on from there to read what replaced it"
        )
        self.partition = partition
        self.position = position
        self.diverged_at = diverged_at


class TopicRecreated(HeadraceError):
    """A topic of this name exists, but it is another one: its id has changed."""

    def __init__(self, topic: str, expected: UUID, found: UUID | None) -> None:
        now = "is gone" if found is None else f"was deleted and created again (its id is now {found})"
        super().__init__(
            f"topic {topic!r} with id {expected} {now}; positions in the old one mean nothing in the new one"
        )
        self.topic = topic
        self.expected = expected
        self.found = found


class CorruptRecords(HeadraceError):
    """Records that do not match their checksum or do not parse. Nothing beyond them was handed out."""

    def __init__(self, partition: TopicPartition, position: int, reason: str) -> None:
        super().__init__(
            f"{partition}: the records at offset {position} are corrupt: {reason}; the broker's log or the "
            f"network damaged them. Reading can go on behind them, at a later offset"
        )
        self.partition = partition
        self.position = position
        self.reason = reason


class DeliveryFailed(HeadraceError):
    """Records that were not, or not certainly, written."""

    def __init__(self, partition: TopicPartition, reason: str, *, code: int | None = None) -> None:
        super().__init__(f"{partition}: records could not be delivered: {reason}")
        self.partition = partition
        self.reason = reason
        self.code = code
