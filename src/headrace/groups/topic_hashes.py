"""The hashes of topics that groups are subscribed to, kept from first use until a topic changes."""

from collections.abc import Iterable

from headrace.groups.metadata_hash import group_hash, topic_hash
from headrace.metadata.image import MetadataImage
from headrace.metadata.partitions import TopicState


class TopicHashes:
    """Hashes by topic name, from the present metadata."""

    __slots__ = ("_hashes", "_image")

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._hashes: dict[str, int] = {}

    def of(self, topics: Iterable[str]) -> int:
        """The hash of a group that is subscribed to these topics; those that do not exist do not count."""
        image = self._image
        return group_hash({name: self._hash(image.topics[name]) for name in topics if name in image.topics})

    def forget(self, topics: Iterable[str]) -> None:
        """These topics are not what they were."""
        for name in topics:
            self._hashes.pop(name, None)

    def _hash(self, topic: TopicState) -> int:
        found = self._hashes.get(topic.name)
        if found is None:
            racks = [self._racks(topic.partitions[index].replicas) for index in sorted(topic.partitions)]
            found = self._hashes[topic.name] = topic_hash(topic.id, topic.name, racks)
        return found

    def _racks(self, replicas: Iterable[int]) -> list[str]:
        """Brokers without a rack, and those that are not registered, do not count."""
        brokers = self._image.brokers
        racks = (brokers[replica].rack for replica in replicas if replica in brokers)
        return [rack for rack in racks if rack is not None]
