"""What hosted partitions tell their node, passed on to the controller away from where it happened."""

from collections.abc import Callable
from uuid import UUID

from headrace.metadata.service import MetadataService
from headrace.server.background import Background
from headrace.types import TopicId


class NodeEvents:
    """`replication.replica_events.ReplicaEvents` of a node in which broker and controller are one."""

    __slots__ = ("_background", "_metadata", "_offline", "_on_fatal", "_places")

    def __init__(
        self, metadata: MetadataService, background: Background, on_fatal: Callable[[str], None]
    ) -> None:
        self._metadata = metadata
        self._background = background
        self._on_fatal = on_fatal
        self._places: dict[tuple[TopicId, int], UUID] = {}
        self._offline: list[UUID] = []

    def on_assigned(self, topic_id: TopicId, partition: int, directory_id: UUID) -> None:
        """A partition lies in another directory than the metadata says."""
        if not self._places:
            self._background.once("telling where partitions lie", self._tell_places)
        self._places[topic_id, partition] = directory_id

    def on_directory_failed(self, path: str, directory_id: UUID) -> None:
        """A log directory has gone offline."""
        if path == self._metadata.directories.metadata_log_dir:
            self._on_fatal(f"the log directory {path} has failed, and the metadata log is in it")
            return
        self._offline.append(directory_id)
        self._background.once("telling of a failed log directory", self._tell_offline)

    def on_fatal(self, reason: str) -> None:
        """No log directory is left."""
        self._on_fatal(reason)

    async def _tell_places(self) -> None:
        places, self._places = self._places, {}
        await self._metadata.assign_directories(places)

    async def _tell_offline(self) -> None:
        await self._metadata.report_directories(self._offline)
