"""Brokers and partitions as clients of one listener may see them: read from the image, nothing kept."""

from typing import NamedTuple
from uuid import UUID

from headrace.metadata.image import MetadataImage
from headrace.metadata.partitions import PartitionState
from headrace.metadata.registrations import BrokerState


class BrokerAddress(NamedTuple):
    """Where a broker is reached by those who came in on a listener of the same name."""

    id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool


def brokers_on(image: MetadataImage, listener: str) -> list[BrokerAddress]:
    """Every registered broker that has the listener."""
    addresses = []
    for broker in image.brokers.values():
        endpoint = broker.endpoints.get(listener)
        if endpoint is not None:
            addresses.append(
                BrokerAddress(broker.id, endpoint.host, endpoint.port, broker.rack, broker.fenced)
            )
    return addresses


def contact_broker(image: MetadataImage, own_id: int) -> int:
    """A broker that passes requests on to the controller, which clients take for it; -1 if none is alive."""
    alive = [broker.id for broker in image.brokers.values() if not broker.fenced]
    return own_id if own_id in alive else min(alive, default=-1)


def has_listener(image: MetadataImage, broker_id: int, listener: str) -> bool:
    """Whether a broker is registered with the listener, be it fenced or not."""
    broker = image.brokers.get(broker_id)
    return broker is not None and listener in broker.endpoints


def reachable(image: MetadataImage, broker_ids: tuple[int, ...], listener: str) -> list[int]:
    """Those of some brokers that are alive and have the listener."""
    found = (image.brokers.get(broker_id) for broker_id in broker_ids)
    return [b.id for b in found if b is not None and not b.fenced and listener in b.endpoints]


class OnlineReplicas:
    """Which replicas can be used by whoever came in on a listener, found out once for many partitions."""

    __slots__ = ("_directories",)

    def __init__(self, image: MetadataImage, listener: str) -> None:
        #: For each broker that is reached, the directories it has lost nothing in. Ids are kept as numbers,
        #: which are found faster than what Python makes of them.
        self._directories = {
            broker.id: _Directories(broker)
            for broker in image.brokers.values()
            if not broker.fenced and listener in broker.endpoints
        }

    def offline(self, partition: PartitionState) -> list[int]:
        """The brokers whose replica can't be used."""
        reached = self._directories
        offline = []
        for broker_id, directory in zip(partition.replicas, partition.directories, strict=True):
            directories = reached.get(broker_id)
            if directories is None or not (directory.int in directories.usable or directories.has(directory)):
                offline.append(broker_id)
        return offline


class _Directories:
    """The directories of a broker that were asked about and found usable."""

    __slots__ = ("_broker", "usable")

    def __init__(self, broker: BrokerState) -> None:
        self._broker = broker
        self.usable: set[int] = set()

    def has(self, directory: UUID) -> bool:
        """Whether a directory can be used; remembers it if so."""
        is_usable = self._broker.has_online(directory)
        if is_usable:
            self.usable.add(directory.int)
        return is_usable
