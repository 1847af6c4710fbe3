"""What consumers of the classic protocol put into its opaque fields: subscriptions and assignments.

Both begin with their version. A version that is not known yet begins as the latest known one does."""

from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

from headrace.metadata.image import MetadataImage
from headrace.protocol.disk_records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)
from headrace.protocol.errors import ProtocolError
from headrace.protocol.prefixed import decode_versioned, encode_versioned

_VERSION_BYTES: Final = 2
_LATEST: Final = 3


def read_version(data: bytes) -> int:
    """The version that something begins with, or the latest known one if that is newer."""
    version = int.from_bytes(data[:_VERSION_BYTES], "big", signed=True)
    if len(data) < _VERSION_BYTES or version < 0:
        raise ProtocolError("what a member says about itself has no version")
    return min(version, _LATEST)


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """What a consumer says about itself when it joins."""
    read_version(data)
    return decode_versioned(ConsumerProtocolSubscription, data, newer_as_latest=True)[0]


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """What a consumer was told to have."""
    read_version(data)
    return decode_versioned(ConsumerProtocolAssignment, data, newer_as_latest=True)[0]


def write_assignment(
    partitions: Mapping[UUID, Iterable[int]], image: MetadataImage, subscription: bytes
) -> bytes:
    """What a consumer shall have, in the version of its subscription. Topics that are gone are left out."""
    topics = [
        ConsumerProtocolAssignmentTopicPartition(
            topic=image.topics_by_id[topic_id].name, partitions=sorted(indexes)
        )
        for topic_id, indexes in partitions.items()
        if topic_id in image.topics_by_id
    ]
    return encode_versioned(
        ConsumerProtocolAssignment(assigned_partitions=topics), read_version(subscription)
    )


def by_topic_id(
    topics: Iterable[tuple[str, Iterable[int]]], image: MetadataImage
) -> dict[UUID, frozenset[int]]:
    """Partitions by topic name as partitions by topic id. Topics that are gone are left out."""
    return {image.topics[name].id: frozenset(indexes) for name, indexes in topics if name in image.topics}
