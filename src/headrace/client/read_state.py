"""How far a reader has come in one partition, and what stands in its way."""

from dataclasses import dataclass, field
from uuid import UUID

from headrace.client.metadata import NO_NODE
from headrace.types import NO_LEADER_EPOCH, ZERO_UUID, TopicPartition


@dataclass(slots=True, eq=False)
class ReadState:
    """One partition. `position` is the next offset to hand out, `fetch_from` the next to fetch.

    `epoch` is the leader epoch of the last batch that was fetched, `checked_epoch` the leader's for which the
    position is known to be on the same history. `readable_end` is where the broker said last that reading
    ends. `retry_at` is when the next attempt may be made after a
    failure, `failing_since` when the failures began, in the loop's time.
    """

    partition: TopicPartition
    position: int
    until: int | None = None
    topic_id: UUID = ZERO_UUID
    fetch_from: int = field(init=False)
    epoch: int = NO_LEADER_EPOCH
    checked_epoch: int = NO_LEADER_EPOCH
    replica: int = NO_NODE
    replica_until: float = 0.0
    buffered_bytes: int = 0
    bytes_max: int = 0
    readable_end: int = -1
    is_in_flight: bool = False
    retry_at: float = 0.0
    failures: int = 0
    range_doubts: int = 0
    failing_since: float | None = None

    def __post_init__(self) -> None:
        self.fetch_from = self.position

    @property
    def is_fetched(self) -> bool:
        """Whether nothing more has to be fetched."""
        return self.until is not None and self.fetch_from >= self.until

    @property
    def is_done(self) -> bool:
        """Whether everything that was wanted was handed out."""
        return self.until is not None and self.position >= self.until

    def succeeded(self) -> None:
        """An attempt came to something."""
        self.failures = self.range_doubts = 0
        self.failing_since = None
        self.retry_at = 0.0

    def failed(self, now: float, wait_seconds: float) -> None:
        """An attempt came to nothing; the next one is made later."""
        self.failures += 1
        self.retry_at = now + wait_seconds
        if self.failing_since is None:
            self.failing_since = now

    def leave_replica(self) -> None:
        """Go back to the leader."""
        self.replica = NO_NODE
