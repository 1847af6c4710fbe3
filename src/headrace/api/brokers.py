"""Brokers and partitions as clients of one listener may see them: read from the image, nothing kept."""

from typing import NamedTuple

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


def offline_replicas(image: MetadataImage, partition: PartitionState, listener: str) -> list[int]:
    """The brokers whose replica can't be used by whoever came in on the listener."""
    return [
        broker_id
        for broker_id in partition.replicas
        if _is_offline(image.brokers.get(broker_id), partition, listener)
    ]


def _is_offline(broker: BrokerState | None, partition: PartitionState, listener: str) -> bool:
    if broker is None or broker.fenced or listener not in broker.endpoints:
        return True
    directory = partition.directory_of(broker.id)
    return directory is not None and not broker.has_online(directory)
