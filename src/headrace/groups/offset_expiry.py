"""Which offsets have grown too old, or have lost their topic."""

from collections.abc import Collection
from typing import NamedTuple
from uuid import UUID

from headrace.coordinator.shard import CoordinatorRecord
from headrace.groups.group import Group
from headrace.groups.offset_records import NO_EXPIRY, offset_tombstone
from headrace.groups.offsets import CommittedOffset, Offsets
from headrace.types import ZERO_UUID


class Expired(NamedTuple):
    """The records that take expired offsets of a group away, and whether no other ones are left."""

    records: list[CoordinatorRecord]
    is_all: bool


class DeletedTopic(NamedTuple):
    """A topic that is gone."""

    topic_id: UUID
    name: str


def expired_offsets(group: Group, offsets: Offsets, retention_ms: int, now_ms: int) -> Expired:
    """What has expired of a group. Offsets that open transactions are about to replace stay."""
    group_id = group.group_id
    topics = offsets.committed.groups.get(group_id)
    has_open = offsets.has_open(group_id)
    if topics is None:
        return Expired([], not has_open)
    age_base = group.age_base()
    if age_base is None:
        return Expired([], False)

    def is_expired(offset: CommittedOffset) -> bool:
        if offset.expire_timestamp != NO_EXPIRY:
            return now_ms >= offset.expire_timestamp
        return now_ms - age_base(offset) >= retention_ms

    records: list[CoordinatorRecord] = []
    is_all = True
    for topic, partitions in topics.items():
        if group.is_subscribed_to(topic):
            is_all = False
            continue
        for index, offset in partitions.items():
            if is_expired(offset) and not offsets.is_open(group_id, topic, index):
                records.append(offset_tombstone(group_id, topic, index))
            else:
                is_all = False
    return Expired(records, is_all and not has_open)


def orphaned_offsets(offsets: Offsets, deleted: Collection[DeletedTopic]) -> list[CoordinatorRecord]:
    """What takes away the offsets of topics that are gone, also those in open transactions."""
    ids = {topic.name: topic.topic_id for topic in deleted}
    tables = (offsets.committed, *offsets.pending.values())
    return [
        offset_tombstone(group_id, topic, index)
        for table in tables
        for (group_id, topic, index), offset in table
        if topic in ids and offset.topic_id in (ZERO_UUID, ids[topic])
    ]
