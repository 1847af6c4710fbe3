"""What a broker's error for one partition means to a reader: try again, look around first, or stop."""

from enum import Enum, auto
from typing import Final

from headrace.errors import ErrorCode


class Reaction(Enum):
    """What to do about an error."""

    RETRY = auto()
    REFRESH = auto()
    CHECK_RANGE = auto()
    CORRUPT = auto()
    STOP = auto()


_REFRESH: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
_RETRY: Final = frozenset({ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.UNKNOWN_SERVER_ERROR})


def reaction_to(code: int) -> Reaction:
    """The reaction to a partition's error code."""
    if code in _REFRESH:
        return Reaction.REFRESH
    if code in _RETRY:
        return Reaction.RETRY
    if code == ErrorCode.OFFSET_OUT_OF_RANGE:
        return Reaction.CHECK_RANGE
    if code == ErrorCode.CORRUPT_MESSAGE:
        return Reaction.CORRUPT
    return Reaction.STOP
