"""What became of the rows: counts and offsets by partition, and failures with their reasons."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from headrace.client.errors import ClientClosed, DeliveryFailed
from headrace.errors import HeadraceError
from headrace.types import TopicPartition

NO_OFFSET: Final = -1
_FAILURES_SHOWN: Final = 8
_RECORD_ERRORS_SHOWN: Final = 3


class RecordError(NamedTuple):
    """What a broker says of one record: its place in the batch that was refused, and why."""

    place: int
    message: str


class Failure(NamedTuple):
    """Rows of one partition that were not, or not certainly, written, for one reason.

    `code` is Kafka's error code, None where the failure was found out on this side. With `may_be_written` a
    request was sent and its answer never came."""

    partition: TopicPartition
    rows: int
    reason: str
    code: int | None = None
    record_errors: tuple[RecordError, ...] = ()
    may_be_written: bool = False

    def __str__(self) -> str:
        noun = "row" if self.rows == 1 else "rows"
        uncertain = " (they may have been written all the same)" if self.may_be_written else ""
        records = "".join(
            f"; record {each.place} of its batch: {each.message}"
            for each in self.record_errors[:_RECORD_ERRORS_SHOWN]
        )
        more = len(self.record_errors) - _RECORD_ERRORS_SHOWN
        rest = f"; and {more} more records" if more > 0 else ""
        return f"{self.partition}: {self.rows} {noun}: {self.reason}{records}{rest}{uncertain}"


@dataclass(slots=True)
class PartitionDelivery:
    """What became of the rows of one partition. Offsets are -1 as long as no broker told one."""

    acknowledged: int = 0
    failed: int = 0
    offset_first: int = NO_OFFSET
    offset_last: int = NO_OFFSET


class DeliveriesFailed(DeliveryFailed):
    """Rows that were not delivered: `failures` says which, why and how many, by partition.

    `acknowledged` and `failed` count all rows of the writer so far. `partition`, `reason` and `code` are
    those of the first failure."""

    def __init__(self, failures: Iterable[Failure], acknowledged: int, failed: int, pending: int) -> None:
        self.failures = tuple(failures)
        first = self.failures[0]
        super().__init__(first.partition, first.reason, code=first.code)
        self.acknowledged = acknowledged
        self.failed = failed
        self.pending = pending
        shown = "; ".join(map(str, self.failures[:_FAILURES_SHOWN]))
        more = len(self.failures) - _FAILURES_SHOWN
        rest = f"; and {more} more failures" if more > 0 else ""
        waiting = f", {pending} not yet known" if pending else ""
        noun = "row was" if failed == 1 else "rows were"
        self.args = (
            f"{failed} {noun} not delivered ({acknowledged} were acknowledged{waiting}): {shown}{rest}",
        )


class WriteBlocked(HeadraceError):
    """A write that waited longer than `max.block.ms`. `rows_taken` of its rows will be sent all the same."""

    def __init__(self, reason: str, rows_taken: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.rows_taken = rows_taken


class WriterEnded(ClientClosed):
    """The writer met with an error that it cannot go on after; it takes no more rows."""


@dataclass(slots=True)
class DeliveryReport:
    """The rows that a writer took, and what became of them: `accepted` is the sum of the other three."""

    partitions: dict[TopicPartition, PartitionDelivery] = field(default_factory=dict)
    accepted: int = 0
    acknowledged: int = 0
    failed: int = 0

    @property
    def pending(self) -> int:
        """Rows of which nothing is known yet."""
        return self.accepted - self.acknowledged - self.failed

    def acknowledged_by_partition(self) -> Mapping[TopicPartition, int]:
        """How many rows of each partition were acknowledged."""
        return {partition: found.acknowledged for partition, found in self.partitions.items()}

    def on_acknowledged(self, partition: TopicPartition, rows: int, offset_base: int) -> None:
        """A broker has taken rows; `offset_base` is -1 where it did not tell."""
        found = self._of(partition)
        found.acknowledged += rows
        self.acknowledged += rows
        if offset_base < 0:
            return
        last = offset_base + rows - 1
        if found.offset_first == NO_OFFSET or offset_base < found.offset_first:
            found.offset_first = offset_base
        found.offset_last = max(found.offset_last, last)

    def on_failed(self, partition: TopicPartition, rows: int) -> None:
        """Rows were given up."""
        self._of(partition).failed += rows
        self.failed += rows

    def _of(self, partition: TopicPartition) -> PartitionDelivery:
        found = self.partitions.get(partition)
        if found is None:
            found = self.partitions[partition] = PartitionDelivery()
        return found


class FailureList:
    """Failures that nobody was told of yet, those of the same kind counted together."""

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: dict[tuple[object, ...], Failure] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, failure: Failure) -> None:
        """Remember a failure."""
        key = (failure.partition, failure.reason, failure.code, failure.may_be_written)
        known = self._found.get(key)
        if known is not None:
            failure = known._replace(rows=known.rows + failure.rows)
        self._found[key] = failure

    def take(self) -> list[Failure]:
        """All of them, by partition; they count as told."""
        found = sorted(self._found.values(), key=lambda failure: failure.partition)
        self._found = {}
        return found
