"""What a Spark user is told when a query cannot be honoured: one sentence, the option or partition named."""

from collections.abc import Iterable
from types import TracebackType

from headrace.errors import HeadraceError
from headrace.types import TopicPartition

__all__ = [
    "ColumnsRefused",
    "DataLost",
    "OptionRefused",
    "ReadStalled",
    "RecordUnreadable",
    "spell_partitions",
]


class OptionRefused(HeadraceError):
    """An option that is wrong, misspelt, or cannot be honoured where it was given."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"option {name!r}: {reason}")
        self.name = name
        self.reason = reason


class ColumnsRefused(HeadraceError):
    """A DataFrame whose columns are not those that are read or written."""


class DataLost(HeadraceError):
    """Records that a query was promised are gone from the cluster, and `failOnDataLoss` is true."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}. Records may have been lost; to go on without them, set failOnDataLoss to false"
        )


class ReadStalled(HeadraceError):
    """A task that got nothing from the brokers for as long as it was willing to wait."""

    def __init__(self, partition: TopicPartition, position: int, until: int, waited_ms: int) -> None:
        super().__init__(
            f"{partition}: nothing came from the brokers for {waited_ms} ms at offset {position} (to be read "
            f"up to {until}); the option kafkaConsumer.pollTimeoutMs says how long a task waits"
        )


class RecordUnreadable(HeadraceError):
    """A record that has no place in a column of Spark's."""


def spell_partitions(partitions: Iterable[TopicPartition], *, at_most: int = 10) -> str:
    """Partitions in order, for a sentence; the first few of many."""
    ordered = sorted(partitions)
    shown = ", ".join(str(partition) for partition in ordered[:at_most])
    return shown if len(ordered) <= at_most else f"{shown} and {len(ordered) - at_most} more"


class Plainly:
    """Errors that are meant for the user pass out of this without the way they took through the program.

    Spark shows a failure with all of it; what was said on purpose then stands out no more.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, HeadraceError):
            error.__traceback__ = None
            error.__suppress_context__ = True
