"""What hosted partitions tell the rest of the node: a Protocol, and one that does nothing."""

from typing import Protocol
from uuid import UUID

from headrace.types import TopicId


class ReplicaEvents(Protocol):
    """Calls happen in the middle of something: whatever takes long is put off by whoever listens."""

    def on_assigned(self, topic_id: TopicId, partition: int, directory_id: UUID) -> None:
        """A partition lies in another directory than the metadata says."""

    def on_directory_failed(self, path: str, directory_id: UUID) -> None:
        """A log directory has gone offline."""

    def on_fatal(self, reason: str) -> None:
        """No log directory is left: the node has to stop."""


class NoEvents:
    """For nodes and tests in which nobody listens."""

    __slots__ = ()

    def on_assigned(self, topic_id: TopicId, partition: int, directory_id: UUID) -> None:
        """Nothing."""

    def on_directory_failed(self, path: str, directory_id: UUID) -> None:
        """Nothing."""

    def on_fatal(self, reason: str) -> None:
        """Nothing."""
