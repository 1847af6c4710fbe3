"""Who an append comes from: the rules that a batch must keep depend on it."""

from enum import IntEnum


class AppendOrigin(IntEnum):
    """The source of an append."""

    REPLICATION = 0
    """A follower's copy of what the leader has validated."""
    COORDINATOR = 1
    """Group and transaction coordinators, and transaction markers."""
    CLIENT = 2
    """A producer."""
    RAFT_LEADER = 3
    """The metadata quorum's leader, which assigns offsets and epochs itself."""
