"""What a consumer group remembers of the topics it is subscribed to: one number, as Kafka 4.3 computes it.

A group whose stored number differs from that of the present metadata needs a new assignment. The numbers must
be Kafka's own, since a group may have been stored by it: XXH3 over the topics' ids, names, partition counts
and racks, all little-endian, texts in UTF-16 followed by their length."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from uuid import UUID

from xxhash import xxh3_64_intdigest

_MAGIC: Final = 0
_HEAD: Final = struct.Struct("<bQQ")
_INT: Final = struct.Struct("<i")
_LONG: Final = struct.Struct("<q")
_LOW_BITS: Final = (1 << 64) - 1


def topic_hash(topic_id: UUID, name: str, racks: Sequence[Iterable[str]]) -> int:
    """The number of a topic; `racks` has the racks of each partition's replicas."""
    parts = [
        _HEAD.pack(_MAGIC, topic_id.int >> 64, topic_id.int & _LOW_BITS),
        _text(name),
        _INT.pack(len(racks)),
    ]
    for index, partition_racks in enumerate(racks):
        parts.append(_INT.pack(index))
        parts.extend(
            _INT.pack(_java_length(rack)) + _text(rack) for rack in sorted(partition_racks, key=_java_order)
        )
    return _signed(xxh3_64_intdigest(b"".join(parts)))


def group_hash(topic_hashes: Mapping[str, int]) -> int:
    """The number of several topics by name. That of a topic which is not there is 0."""
    if not topic_hashes:
        return 0
    names = sorted(topic_hashes, key=_java_order)
    return _signed(xxh3_64_intdigest(b"".join(_LONG.pack(topic_hashes[name]) for name in names)))


def _text(text: str) -> bytes:
    units = text.encode("utf-16-le")
    return units + _INT.pack(len(units) // 2)


def _java_length(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _java_order(text: str) -> bytes:
    """Java orders texts by their UTF-16 units."""
    return text.encode("utf-16-be")


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number
