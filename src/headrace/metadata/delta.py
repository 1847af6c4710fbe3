"""What a committed batch has changed: told to everyone who keeps something in step with the image."""

from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from headrace.metadata.partitions import PartitionState, TopicState


class ConfigResource(NamedTuple):
    """What a configuration belongs to: the code of its type (`headrace.config.alteration.ResourceType`) and
    its name, which is empty for the default of all brokers."""

    type: int
    name: str


class PartitionId(NamedTuple):
    """A partition by its topic's id, which a topic of the same name that is created later does not share."""

    topic_id: UUID
    partition: int


@dataclass(slots=True)
class MetadataDelta:
    """The difference that some records make. What is new is in the image; what was before is here.

    A topic that was created and deleted in the same delta is in `topics_deleted` only. `partitions` holds
    every partition that was created (None) or changed (its former state) and is still there."""

    topics_created: dict[UUID, str] = field(default_factory=dict)
    topics_deleted: dict[UUID, TopicState] = field(default_factory=dict)
    partitions: dict[PartitionId, PartitionState | None] = field(default_factory=dict)
    configs: set[ConfigResource] = field(default_factory=set)
    brokers: set[int] = field(default_factory=set)
    controllers: set[int] = field(default_factory=set)
    features: set[str] = field(default_factory=set)
    producer_ids: bool = False
    acls: set[UUID] = field(default_factory=set)
    client_quotas: set[tuple[tuple[str, str | None], ...]] = field(default_factory=set)
    scram_credentials: set[tuple[int, str]] = field(default_factory=set)
    delegation_tokens: set[str] = field(default_factory=set)

    @property
    def is_empty(self) -> bool:
        """Whether nothing has changed."""
        return not any(getattr(self, name) for name in self.__slots__)

    def forget_partitions(self, topic_id: UUID) -> None:
        """A topic has gone, and its partitions with it."""
        for partition in [each for each in self.partitions if each.topic_id == topic_id]:
            del self.partitions[partition]
