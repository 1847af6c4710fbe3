"""How far a stream is: the next offset of every partition, and the ids of their topics.

In the checkpoint it reads `{"orders": {"id": "Nx3o…", "0": 42, "1": 17}}`. The id is that of `kafka-topics
--describe`; it is left out where the brokers have none, and a checkpoint of Spark's own source, which never
has ids, is understood as well.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from headrace.errors import HeadraceError
from headrace.types import ZERO_UUID, TopicPartition

_ID = "id"


class OffsetsUnreadable(HeadraceError):
    """A checkpoint that holds something else than offsets of topics."""

    def __init__(self, found: object) -> None:
        super().__init__(
            f'expected offsets such as {{"topicA": {{"0": 42}}}} in the checkpoint, found {found!r}; was it '
            "written by another source?"
        )


@dataclass(frozen=True, slots=True)
class Offsets:
    """The next offset to read of every partition."""

    positions: Mapping[TopicPartition, int]
    ids: Mapping[str, UUID] = field(default_factory=dict)

    def to_json(self) -> dict[str, dict[str, Any]]:
        """Always in the same order, since Spark compares the text."""
        found: dict[str, dict[str, Any]] = {}
        for partition in sorted(self.positions):
            if partition.topic not in found:
                topic_id = self.ids.get(partition.topic, ZERO_UUID)
                found[partition.topic] = {} if topic_id == ZERO_UUID else {_ID: spell_id(topic_id)}
            found[partition.topic][str(partition.partition)] = self.positions[partition]
        return found

    @staticmethod
    def from_json(found: object) -> "Offsets":
        """What `to_json` made, also after a round through Spark's checkpoint."""
        if not isinstance(found, dict):
            raise OffsetsUnreadable(found)
        positions: dict[TopicPartition, int] = {}
        ids: dict[str, UUID] = {}
        for topic, entries in found.items():
            if not isinstance(entries, dict):
                raise OffsetsUnreadable(found)
            for name, value in entries.items():
                if name == _ID and isinstance(value, str):
                    ids[topic] = read_id(value)
                elif name.isdecimal() and isinstance(value, int) and value >= 0:
                    positions[TopicPartition(topic, int(name))] = value
                else:
                    raise OffsetsUnreadable(found)
        return Offsets(positions, ids)


def spell_id(topic_id: UUID) -> str:
    """An id as Kafka's tools print it."""
    return base64.urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()


def read_id(text: str) -> UUID:
    """The id that Kafka's tools print so."""
    try:
        return UUID(bytes=base64.urlsafe_b64decode(text + "=="))
    except ValueError:
        raise OffsetsUnreadable(text) from None
