"""Committed offsets as records, encoded by hand: commits are the most frequent writes of a coordinator.

What comes out is byte for byte what the codec makes of the same messages."""

from functools import lru_cache
from struct import Struct
from typing import Final
from uuid import UUID

from headrace.coordinator.shard import CoordinatorRecord
from headrace.groups.offsets import NewOffset
from headrace.protocol.disk_records.offsets import OffsetCommitKey, OffsetCommitValue
from headrace.protocol.prefixed import GROUP_LOG
from headrace.protocol.varint import unsigned_varint
from headrace.types import ZERO_UUID

OFFSET_VERSION: Final = 4
#: The only version that says when an offset expires.
EXPIRING_OFFSET_VERSION: Final = 1
NO_EXPIRY: Final = -1

_new_tuple = tuple.__new__
_KEYS_MAX: Final = 16_384
_HEAD: Final = Struct(">hqi")
_TIME: Final = Struct(">q")
_WITHOUT_METADATA: Final = Struct(">hqiBq")
_NO_TAGS: Final = b"\x00"
#: One tag, number 0, 16 bytes.
_TOPIC_ID_TAG: Final = b"\x01\x00\x10"


def topic_tag(topic_id: UUID) -> bytes:
    """How the value of an offset ends, by its topic."""
    return _NO_TAGS if topic_id == ZERO_UUID else _TOPIC_ID_TAG + topic_id.bytes


@lru_cache(maxsize=_KEYS_MAX)
def _key(group_id: str, topic: str, partition: int) -> tuple[OffsetCommitKey, bytes]:
    """Groups commit the same partitions over and over."""
    key = OffsetCommitKey(group=group_id, topic=topic, partition=partition)
    return key, GROUP_LOG.encode_key(key)


def offset_write(
    group_id: str,
    topic: str,
    partition: int,
    offset: int,
    leader_epoch: int,
    metadata: str,
    now_ms: int,
    topic_id: UUID,
    tag: bytes,
) -> CoordinatorRecord:
    """The record that commits an offset; `tag` is the `topic_tag` of the topic's id."""
    key, encoded_key = _key(group_id, topic, partition)
    # A named tuple's own constructor takes several times as long.
    value = _new_tuple(NewOffset, (offset, leader_epoch, metadata, now_ms, NO_EXPIRY, topic_id))
    if metadata:
        text = metadata.encode()
        encoded_value = b"".join(
            (
                _HEAD.pack(OFFSET_VERSION, offset, leader_epoch),
                unsigned_varint(len(text) + 1),
                text,
                _TIME.pack(now_ms),
                tag,
            )
        )
    else:
        encoded_value = _WITHOUT_METADATA.pack(OFFSET_VERSION, offset, leader_epoch, 1, now_ms) + tag
    return _new_tuple(CoordinatorRecord, (key, value, OFFSET_VERSION, (encoded_key, encoded_value)))


def expiring_offset_write(
    group_id: str, topic: str, partition: int, offset: int, metadata: str, now_ms: int, expires_ms: int
) -> CoordinatorRecord:
    """The record of an offset whose client says when it expires, as only old ones do."""
    value = OffsetCommitValue(
        offset=offset, metadata=metadata, commit_timestamp=now_ms, expire_timestamp=expires_ms
    )
    key = OffsetCommitKey(group=group_id, topic=topic, partition=partition)
    return CoordinatorRecord(key, value, EXPIRING_OFFSET_VERSION)


def offset_tombstone(group_id: str, topic: str, partition: int) -> CoordinatorRecord:
    """The record that deletes an offset."""
    return CoordinatorRecord(OffsetCommitKey(group=group_id, topic=topic, partition=partition))
