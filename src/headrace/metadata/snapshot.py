"""The image as records: what a snapshot holds, in the order Kafka writes and reads them.

metadata.version comes first, since it says what the rest may contain; then features, brokers, controllers,
topics each with its partitions, configurations, client quotas, producer ids, ACLs, SCRAM credentials and
delegation tokens."""

from collections.abc import Iterator

from headrace.metadata.image import MetadataImage
from headrace.metadata.versions import METADATA_VERSION, MetadataVersion
from headrace.protocol.disk_records.cluster_metadata import (
    ClientQuotaRecord,
    ConfigRecord,
    EntityData,
    FeatureLevelRecord,
    ProducerIdsRecord,
    TopicRecord,
)
from headrace.protocol.message import Message

VersionedRecord = tuple[Message, int]


def snapshot_records(image: MetadataImage) -> Iterator[VersionedRecord]:
    """Every record of a snapshot with the version to write it in."""
    version = image.metadata_version
    yield from _features(image)
    yield from _cluster(image, version)
    yield from _topics(image, version)
    yield from _configs(image)
    yield from _client_quotas(image)
    if image.next_producer_id >= 0:
        yield ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id), 0
    yield from ((record, 0) for record in image.acls.values())
    if version.has_scram:
        yield from ((image.scram_credentials[key], 0) for key in sorted(image.scram_credentials))
    if version.has_delegation_tokens:
        yield from ((record, 0) for record in image.delegation_tokens.values())


def _features(image: MetadataImage) -> Iterator[VersionedRecord]:
    yield FeatureLevelRecord(name=METADATA_VERSION, feature_level=image.features[METADATA_VERSION]), 0
    for name in sorted(image.features):
        if name != METADATA_VERSION:
            yield FeatureLevelRecord(name=name, feature_level=image.features[name]), 0


def _cluster(image: MetadataImage, version: MetadataVersion) -> Iterator[VersionedRecord]:
    for broker in image.brokers.values():
        yield broker.record(version), version.register_broker_record
    if version.has_controller_registration:
        for controller in image.controllers.values():
            yield controller.record(), 0


def _topics(image: MetadataImage, version: MetadataVersion) -> Iterator[VersionedRecord]:
    elr = image.elr_enabled
    for topic in image.topics_by_id.values():
        yield TopicRecord(name=topic.name, topic_id=topic.id), 0
        for index in sorted(topic.partitions):
            record = topic.partitions[index].record(topic.id, index, version, elr=elr)
            yield record, version.partition_record


def _configs(image: MetadataImage) -> Iterator[VersionedRecord]:
    for resource, texts in image.configs.items():
        for name, value in texts.items():
            yield (
                ConfigRecord(
                    resource_type=resource.type, resource_name=resource.name, name=name, value=value
                ),
                0,
            )


def _client_quotas(image: MetadataImage) -> Iterator[VersionedRecord]:
    for entity, values in image.client_quotas.items():
        parts = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
        for key, value in values.items():
            yield ClientQuotaRecord(entity=parts, key=key, value=value, remove=False), 0
