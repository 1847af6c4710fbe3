"""One partition as the metadata has it, in the terms of this room."""

from dataclasses import dataclass
from uuid import UUID

from headrace.metadata.ids import UNASSIGNED_DIRECTORY
from headrace.types import TopicId, TopicPartition


@dataclass(slots=True, frozen=True)
class PartitionAssignment:
    """Who has a partition and who leads it; `directory` is this node's part of the directory assignment."""

    partition: TopicPartition
    topic_id: TopicId
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int = 0
    directory: UUID = UNASSIGNED_DIRECTORY
