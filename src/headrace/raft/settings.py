"""What a member of the metadata quorum is told by its configuration."""

from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from headrace.config.endpoints import Address
from headrace.config.node import NodeConfig
from headrace.log.settings import LogSettings
from headrace.types import TopicPartition

METADATA_PARTITION: Final = TopicPartition("__cluster_metadata", 0)
METADATA_TOPIC_ID: Final = UUID(int=1)
_DELETE_DELAY_MS: Final = 60_000


@dataclass(slots=True, frozen=True)
class QuorumSettings:
    """Who this member is, where its log lies, and how long the log and its snapshots are kept."""

    node_id: int
    metadata_log_dir: str
    directory_id: UUID
    static_voters: dict[int, Address] = field(default_factory=dict)
    endpoints: tuple[tuple[str, Address], ...] = ()
    log: LogSettings = field(default_factory=lambda: LogSettings(retention_ms=-1, retention_bytes=-1))
    batch_bytes_max: int = 8_388_608
    retention_bytes: int = 104_857_600
    retention_ms: int = 604_800_000
    delete_delay_ms: int = _DELETE_DELAY_MS

    @property
    def directory(self) -> str:
        """The directory of the metadata log itself."""
        return f"{self.metadata_log_dir}/{METADATA_PARTITION}"


def quorum_settings(config: NodeConfig, directory_id: UUID) -> QuorumSettings:
    """The settings of the node that has this configuration."""
    segment_bytes = config["internal.metadata.log.segment.bytes"]
    batch_bytes_max = config.integer("internal.metadata.max.batch.size.in.bytes")
    log = LogSettings(
        retention_ms=-1,
        retention_bytes=-1,
        max_message_bytes=batch_bytes_max,
        segment_bytes=(
            segment_bytes if isinstance(segment_bytes, int) else config.integer("metadata.log.segment.bytes")
        ),
        segment_ms=config.integer("metadata.log.segment.ms"),
        file_delete_delay_ms=_DELETE_DELAY_MS,
    )
    return QuorumSettings(
        node_id=config.node_id,
        metadata_log_dir=config.metadata_log_dir,
        directory_id=directory_id,
        static_voters=config.voters,
        endpoints=tuple(
            (endpoint.name, Address(endpoint.host or "localhost", endpoint.port))
            for endpoint in config.advertised_controller_listeners
        ),
        log=log,
        batch_bytes_max=batch_bytes_max,
        retention_bytes=config.integer("metadata.max.retention.bytes"),
        retention_ms=config.integer("metadata.max.retention.ms"),
        delete_delay_ms=config.integer("internal.metadata.delete.delay.millis"),
    )
