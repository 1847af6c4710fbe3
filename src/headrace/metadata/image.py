"""The image: what all metadata records up to some offset add up to, by name and id, ready to be looked up.

Only `apply` changes it, record by record, and it notes what has changed in a `MetadataDelta`. Values inside
are immutable, so that `copy` is cheap and readers may keep what they have found. Records of features that
nothing here implements yet are kept as they came and written back into snapshots (`snapshot.py`).

    image.topics["orders"].partitions[0].leader
    image.topics_by_id[topic_id].name
    image.config(ConfigResource(ResourceType.TOPIC, "orders"))
    image.brokers[1].endpoints["PLAINTEXT"].port
    image.feature_level("group.version")
"""

from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import UUID

from headrace.config.alteration import ResourceType
from headrace.errors import HeadraceError
from headrace.metadata.delta import ConfigResource, MetadataDelta, PartitionId
from headrace.metadata.partitions import PartitionState, TopicState, partition_of_record
from headrace.metadata.registrations import (
    BrokerState,
    ControllerState,
    broker_of_record,
    controller_of_record,
)
from headrace.metadata.versions import ELR_VERSION, KRAFT_VERSION, METADATA_VERSION, MetadataVersion
from headrace.metadata.versions import metadata_version as version_of_level
from headrace.protocol.disk_records import cluster_metadata as records
from headrace.protocol.message import Message

QuotaEntity = tuple[tuple[str, str | None], ...]
_NO_CONFIG: Final[dict[str, str]] = {}
_FENCING: Final = {-1: False, 1: True}


class UnreplayableRecord(HeadraceError):
    """A record that does not fit what came before it: the log is damaged or of a newer release."""


class MetadataImage:
    """The state of the cluster at an offset: `offset` and `epoch` are those of the last record in it."""

    __slots__ = (
        "acls",
        "brokers",
        "client_quotas",
        "configs",
        "controllers",
        "delegation_tokens",
        "epoch",
        "features",
        "next_producer_id",
        "offset",
        "producer_ids_broker",
        "registration_offsets",
        "scram_credentials",
        "timestamp",
        "topics",
        "topics_by_id",
    )

    def __init__(self) -> None:
        self.offset = -1
        self.epoch = -1
        self.timestamp = -1
        #: Finalized levels of features that are on, metadata.version among them; kraft.version is not here.
        self.features: dict[str, int] = {}
        self.brokers: dict[int, BrokerState] = {}
        #: Where each broker's registration stands in the log; a broker is current once it has got there.
        self.registration_offsets: dict[int, int] = {}
        self.controllers: dict[int, ControllerState] = {}
        self.topics: dict[str, TopicState] = {}
        self.topics_by_id: dict[UUID, TopicState] = {}
        self.configs: dict[ConfigResource, dict[str, str]] = {}
        self.client_quotas: dict[QuotaEntity, dict[str, float]] = {}
        self.next_producer_id = -1
        self.producer_ids_broker = (-1, -1)
        self.acls: dict[UUID, records.AccessControlEntryRecord] = {}
        self.scram_credentials: dict[tuple[int, str], records.UserScramCredentialRecord] = {}
        self.delegation_tokens: dict[str, records.DelegationTokenRecord] = {}

    def __repr__(self) -> str:
        return f"MetadataImage(offset={self.offset}, epoch={self.epoch}, {len(self.topics)} topics)"

    def same_state(self, other: "MetadataImage") -> bool:
        """Whether two images say the same about the cluster, wherever they stand in the log."""
        aside = ("offset", "epoch", "timestamp", "registration_offsets", "producer_ids_broker")
        return all(
            getattr(self, name) == getattr(other, name) for name in self.__slots__ if name not in aside
        )

    def copy(self) -> "MetadataImage":
        """An image of its own that says the same; the immutable values in it are shared."""
        other = MetadataImage()
        for name in self.__slots__:
            value = getattr(self, name)
            setattr(other, name, dict(value) if isinstance(value, dict) else value)
        other.configs = {resource: dict(texts) for resource, texts in self.configs.items()}
        other.client_quotas = {entity: dict(values) for entity, values in self.client_quotas.items()}
        other.topics_by_id = {topic_id: topic.copy() for topic_id, topic in self.topics_by_id.items()}
        other.topics = {topic.name: topic for topic in other.topics_by_id.values()}
        return other

    # Looking up

    @property
    def metadata_version(self) -> MetadataVersion:
        """The version that says which records may be written; an empty image has none."""
        level = self.features.get(METADATA_VERSION)
        if level is None:
            raise UnreplayableRecord("the metadata has no metadata.version yet")
        return MetadataVersion(level)

    @property
    def has_metadata_version(self) -> bool:
        return METADATA_VERSION in self.features

    def feature_level(self, name: str) -> int:
        """The finalized level of a feature, 0 if it is off."""
        return self.features.get(name, 0)

    @property
    def elr_enabled(self) -> bool:
        """Whether eligible leader replicas are kept."""
        return self.feature_level(ELR_VERSION) >= 1

    def config(self, resource: ConfigResource) -> Mapping[str, str]:
        """What is set for a resource; empty if nothing is."""
        return self.configs.get(resource, _NO_CONFIG)

    def topic_config(self, name: str) -> Mapping[str, str]:
        """What is set for a topic."""
        return self.config(ConfigResource(ResourceType.TOPIC, name))

    def broker_config(self, broker_id: int | None) -> Mapping[str, str]:
        """What is set for one broker, or with None for all of them."""
        return self.config(ConfigResource(ResourceType.BROKER, "" if broker_id is None else str(broker_id)))

    def partition(self, topic: str, index: int) -> PartitionState | None:
        """A partition by the name of its topic; None if there is none."""
        found = self.topics.get(topic)
        return None if found is None else found.partitions.get(index)

    # Replaying

    def apply(self, record: Message, delta: MetadataDelta, offset: int = -1) -> None:
        """Take over one record. `offset` is its place in the log, if it comes from there."""
        handler = _HANDLERS.get(type(record))
        if handler is None:
            raise UnreplayableRecord(f"{type(record).__name__} is no record of the metadata log")
        if type(record) is records.RegisterBrokerRecord:
            self.registration_offsets[record.broker_id] = offset
        handler(self, record, delta)

    def _topic(self, record: Any) -> TopicState:
        topic = self.topics_by_id.get(record.topic_id)
        if topic is None:
            raise UnreplayableRecord(f"{record} concerns a topic that does not exist")
        return topic

    def _apply_topic(self, record: records.TopicRecord, delta: MetadataDelta) -> None:
        if record.name in self.topics:
            raise UnreplayableRecord(f"{record} creates a topic that exists already")
        topic = TopicState(record.name, record.topic_id)
        self.topics[record.name] = self.topics_by_id[record.topic_id] = topic
        delta.topics_created[record.topic_id] = record.name

    def _apply_partition(self, record: records.PartitionRecord, delta: MetadataDelta) -> None:
        topic = self._topic(record)
        delta.partitions.setdefault(
            PartitionId(topic.id, record.partition_id), topic.partitions.get(record.partition_id)
        )
        topic.partitions[record.partition_id] = partition_of_record(record)

    def _apply_partition_change(self, record: records.PartitionChangeRecord, delta: MetadataDelta) -> None:
        topic = self._topic(record)
        former = topic.partitions.get(record.partition_id)
        if former is None:
            raise UnreplayableRecord(f"{record} concerns a partition that does not exist")
        delta.partitions.setdefault(PartitionId(topic.id, record.partition_id), former)
        topic.partitions[record.partition_id] = former.changed(record)

    def _apply_remove_topic(self, record: records.RemoveTopicRecord, delta: MetadataDelta) -> None:
        topic = self._topic(record)
        del self.topics_by_id[topic.id]
        del self.topics[topic.name]
        delta.topics_created.pop(topic.id, None)
        delta.topics_deleted[topic.id] = topic
        delta.forget_partitions(topic.id)
        resource = ConfigResource(ResourceType.TOPIC, topic.name)
        if self.configs.pop(resource, None) is not None:
            delta.configs.add(resource)

    def _apply_clear_elr(self, record: records.ClearElrRecord, delta: MetadataDelta) -> None:
        if record.topic_name and record.topic_name not in self.topics:
            raise UnreplayableRecord(f"{record} concerns a topic that does not exist")
        names = [record.topic_name] if record.topic_name else list(self.topics)
        for topic in (self.topics[name] for name in names):
            for index, partition in topic.partitions.items():
                if partition.elr or partition.last_known_elr:
                    cleared = records.PartitionChangeRecord(
                        partition_id=index,
                        topic_id=topic.id,
                        eligible_leader_replicas=[],
                        last_known_elr=[],
                    )
                    self._apply_partition_change(cleared, delta)

    def _apply_config(self, record: records.ConfigRecord, delta: MetadataDelta) -> None:
        resource = ConfigResource(record.resource_type, record.resource_name)
        delta.configs.add(resource)
        if record.value is not None:
            self.configs.setdefault(resource, {})[record.name] = record.value
            return
        texts = self.configs.get(resource, {})
        texts.pop(record.name, None)
        if not texts:
            self.configs.pop(resource, None)

    def _apply_register_broker(self, record: records.RegisterBrokerRecord, delta: MetadataDelta) -> None:
        self.brokers[record.broker_id] = broker_of_record(record)
        delta.brokers.add(record.broker_id)

    def _broker(self, broker_id: int, epoch: int, record: Message) -> BrokerState:
        broker = self.brokers.get(broker_id)
        if broker is None or broker.epoch != epoch:
            raise UnreplayableRecord(f"{record} concerns a broker that is not registered with this epoch")
        return broker

    def _apply_unregister_broker(self, record: records.UnregisterBrokerRecord, delta: MetadataDelta) -> None:
        self._broker(record.broker_id, record.broker_epoch, record)
        del self.brokers[record.broker_id]
        self.registration_offsets.pop(record.broker_id, None)
        delta.brokers.add(record.broker_id)

    def _apply_fence(self, record: records.FenceBrokerRecord, delta: MetadataDelta) -> None:
        self.brokers[record.id] = self._broker(record.id, record.epoch, record)._replace(fenced=True)
        delta.brokers.add(record.id)

    def _apply_unfence(self, record: records.UnfenceBrokerRecord, delta: MetadataDelta) -> None:
        self.brokers[record.id] = self._broker(record.id, record.epoch, record)._replace(fenced=False)
        delta.brokers.add(record.id)

    def _apply_broker_change(
        self, record: records.BrokerRegistrationChangeRecord, delta: MetadataDelta
    ) -> None:
        broker = self._broker(record.broker_id, record.broker_epoch, record)
        cordoned = record.cordoned_log_dirs
        self.brokers[record.broker_id] = broker._replace(
            fenced=_FENCING.get(record.fenced, broker.fenced),
            in_controlled_shutdown=broker.in_controlled_shutdown or record.in_controlled_shutdown == 1,
            log_dirs=tuple(record.log_dirs) or broker.log_dirs,
            cordoned_log_dirs=broker.cordoned_log_dirs if cordoned is None else tuple(cordoned),
        )
        delta.brokers.add(record.broker_id)

    def _apply_register_controller(
        self, record: records.RegisterControllerRecord, delta: MetadataDelta
    ) -> None:
        self.controllers[record.controller_id] = controller_of_record(record)
        delta.controllers.add(record.controller_id)

    def _apply_feature(self, record: records.FeatureLevelRecord, delta: MetadataDelta) -> None:
        if record.name == KRAFT_VERSION:
            # Its level is told by the quorum's own records; some releases wrote it here by mistake.
            return
        if record.name == METADATA_VERSION:
            version_of_level(record.feature_level)
        if record.feature_level == 0:
            self.features.pop(record.name, None)
        else:
            self.features[record.name] = record.feature_level
        delta.features.add(record.name)

    def _apply_producer_ids(self, record: records.ProducerIdsRecord, delta: MetadataDelta) -> None:
        self.next_producer_id = record.next_producer_id
        self.producer_ids_broker = (record.broker_id, record.broker_epoch)
        delta.producer_ids = True

    def _apply_client_quota(self, record: records.ClientQuotaRecord, delta: MetadataDelta) -> None:
        entity = tuple(sorted((each.entity_type, each.entity_name) for each in record.entity))
        delta.client_quotas.add(entity)
        if not record.remove:
            self.client_quotas.setdefault(entity, {})[record.key] = record.value
            return
        values = self.client_quotas.get(entity, {})
        values.pop(record.key, None)
        if not values:
            self.client_quotas.pop(entity, None)

    def _apply_acl(self, record: records.AccessControlEntryRecord, delta: MetadataDelta) -> None:
        self.acls[record.id] = record
        delta.acls.add(record.id)

    def _apply_remove_acl(self, record: records.RemoveAccessControlEntryRecord, delta: MetadataDelta) -> None:
        self.acls.pop(record.id, None)
        delta.acls.add(record.id)

    def _apply_scram(self, record: records.UserScramCredentialRecord, delta: MetadataDelta) -> None:
        key = (record.mechanism, record.name)
        self.scram_credentials[key] = record
        delta.scram_credentials.add(key)

    def _apply_remove_scram(
        self, record: records.RemoveUserScramCredentialRecord, delta: MetadataDelta
    ) -> None:
        key = (record.mechanism, record.name)
        self.scram_credentials.pop(key, None)
        delta.scram_credentials.add(key)

    def _apply_token(self, record: records.DelegationTokenRecord, delta: MetadataDelta) -> None:
        self.delegation_tokens[record.token_id] = record
        delta.delegation_tokens.add(record.token_id)

    def _apply_remove_token(self, record: records.RemoveDelegationTokenRecord, delta: MetadataDelta) -> None:
        self.delegation_tokens.pop(record.token_id, None)
        delta.delegation_tokens.add(record.token_id)

    def _ignore(self, record: Message, delta: MetadataDelta) -> None:
        """Records that leave nothing behind."""


_HANDLERS: Final[dict[type[Message], Callable[[MetadataImage, Any, MetadataDelta], None]]] = {
    records.TopicRecord: MetadataImage._apply_topic,
    records.PartitionRecord: MetadataImage._apply_partition,
    records.PartitionChangeRecord: MetadataImage._apply_partition_change,
    records.RemoveTopicRecord: MetadataImage._apply_remove_topic,
    records.ClearElrRecord: MetadataImage._apply_clear_elr,
    records.ConfigRecord: MetadataImage._apply_config,
    records.RegisterBrokerRecord: MetadataImage._apply_register_broker,
    records.UnregisterBrokerRecord: MetadataImage._apply_unregister_broker,
    records.FenceBrokerRecord: MetadataImage._apply_fence,
    records.UnfenceBrokerRecord: MetadataImage._apply_unfence,
    records.BrokerRegistrationChangeRecord: MetadataImage._apply_broker_change,
    records.RegisterControllerRecord: MetadataImage._apply_register_controller,
    records.FeatureLevelRecord: MetadataImage._apply_feature,
    records.ProducerIdsRecord: MetadataImage._apply_producer_ids,
    records.ClientQuotaRecord: MetadataImage._apply_client_quota,
    records.AccessControlEntryRecord: MetadataImage._apply_acl,
    records.RemoveAccessControlEntryRecord: MetadataImage._apply_remove_acl,
    records.UserScramCredentialRecord: MetadataImage._apply_scram,
    records.RemoveUserScramCredentialRecord: MetadataImage._apply_remove_scram,
    records.DelegationTokenRecord: MetadataImage._apply_token,
    records.RemoveDelegationTokenRecord: MetadataImage._apply_remove_token,
    records.NoOpRecord: MetadataImage._ignore,
    records.ZkMigrationStateRecord: MetadataImage._ignore,
    records.BeginTransactionRecord: MetadataImage._ignore,
    records.EndTransactionRecord: MetadataImage._ignore,
    records.AbortTransactionRecord: MetadataImage._ignore,
}
