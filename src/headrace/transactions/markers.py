"""Markers: what partitions are told of a transaction's outcome, and who writes them."""

from collections.abc import Awaitable, Iterable
from typing import NamedTuple, Protocol, TypeAlias

from headrace.errors import ErrorCode
from headrace.transactions.metadata import TransactionMetadata
from headrace.types import TopicPartition


class Marker(NamedTuple):
    """The end of a producer's transaction. `coordinator_epoch` fences coordinators that were replaced."""

    producer_id: int
    producer_epoch: int
    commit: bool
    coordinator_epoch: int
    transaction_version: int


def marker_of(ending: TransactionMetadata, coordinator_epoch: int) -> Marker:
    """The marker for every partition of a transaction whose outcome is known."""
    return Marker(
        ending.producer_id,
        ending.producer_epoch,
        ending.commits,
        coordinator_epoch,
        ending.client_version,
    )


MarkerOutcomes: TypeAlias = dict[TopicPartition, ErrorCode]


class MarkerWriter(Protocol):
    """Writes markers to partitions that one broker leads."""

    def write(
        self, marker: Marker, partitions: Iterable[TopicPartition]
    ) -> MarkerOutcomes | Awaitable[MarkerOutcomes]:
        """How each partition has taken it, once it is replicated: at once where that takes no waiting."""


class OtherBrokers(Protocol):
    """Reaches the partitions that other brokers lead."""

    def writer_for(self, node_id: int) -> MarkerWriter | None:
        """Who writes markers at a broker; None if it can't be reached now."""
