"""Metadata that a real Kafka 4.3.1 has written: replayed, snapshotted and started on, with nothing lost."""

from collections import Counter
from pathlib import Path
from uuid import UUID

import pytest

from headrace.config.alteration import ResourceType
from headrace.config.endpoints import Address
from headrace.log.health import DirectoryHealth
from headrace.metadata.delta import ConfigResource, MetadataDelta
from headrace.metadata.directories import load_directories
from headrace.metadata.image import MetadataImage
from headrace.metadata.snapshot import snapshot_records
from headrace.metadata.store import MetadataStore, decode_all
from headrace.protocol.disk_records.cluster_metadata import RegisterBrokerRecord
from headrace.protocol.message import Message
from headrace.protocol.prefixed import decode_metadata_record, encode_metadata_record
from headrace.raft.batches import ControlBatch, DataBatch
from headrace.raft.quorum import Quorum
from headrace.raft.settings import QuorumSettings
from headrace.raft.snapshots import read_snapshot
from headrace.testing.clock import ManualClock
from headrace.testing.entropy import SeededEntropy
from headrace.testing.memory_disk import MemoryDisk
from tests.support_metadata import DATA, FIXTURES, RECORDED, STATIC, MetadataNode, on_loop, unpack

LOG = f"{DATA}/__cluster_metadata-0"
ARCHIVES = [
    RECORDED,
    FIXTURES / "kafka-4.3.1-clean-shutdown.tar.gz",
    FIXTURES / "kafka-4.3.1-killed.tar.gz",
]
SNAPSHOTS = [
    "00000000000000000049-0000000001.checkpoint",
    "00000000000000000155-0000000003.checkpoint",
]


class History(MetadataStore):
    """A store that keeps the image of every offset."""

    def __init__(self) -> None:
        super().__init__()
        self.images: dict[int, MetadataImage] = {}

    def on_committed(self, batch: DataBatch | ControlBatch) -> None:
        super().on_committed(batch)
        self.images[self.image.offset + 1] = self.image.copy()


def recorded(archive: Path = RECORDED) -> MemoryDisk:
    disk = MemoryDisk()
    unpack(archive, disk)
    return disk


def replayed(disk: MemoryDisk) -> History:
    """The history of the log alone, without its snapshots."""
    for name in disk.list_directory(LOG):
        if name.endswith(".checkpoint"):
            disk.remove(f"{LOG}/{name}")
    history = History()
    settings = QuorumSettings(1, DATA, UUID(int=1000), {1: Address("127.0.0.1", 9093)})
    Quorum.open(disk, ManualClock(), SeededEntropy(), DirectoryHealth(DATA), settings, history)
    return history


def records_of(disk: MemoryDisk, name: str) -> list[Message]:
    found: list[Message] = []
    for batch in read_snapshot(disk, f"{LOG}/{name}"):
        if isinstance(batch, DataBatch):
            found += decode_all(batch.values)
    return found


def image_of(records: list[Message]) -> MetadataImage:
    image = MetadataImage()
    for record in records:
        image.apply(record, MetadataDelta())
    return image


def through_bytes(image: MetadataImage) -> list[Message]:
    """The records of our own snapshot, encoded and decoded."""
    return [
        decode_metadata_record(encode_metadata_record(record, version))[0]
        for record, version in snapshot_records(image)
    ]


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_the_log_adds_up_to_what_kafka_put_into_its_snapshot(name: str) -> None:
    theirs = image_of(records_of(recorded(), name))
    ours = replayed(recorded()).images[int(name[:20])]
    assert ours.same_state(theirs)


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_our_snapshot_has_kafkas_records_in_kafkas_order(name: str) -> None:
    theirs = records_of(recorded(), name)
    ours = through_bytes(replayed(recorded()).images[int(name[:20])])
    assert [type(record) for record in ours] == [type(record) for record in theirs]

    def text(record: Message) -> str:
        if isinstance(record, RegisterBrokerRecord):
            # Kafka keeps features in a map of no particular order.
            record.features.sort(key=lambda feature: feature.name)
        return repr(record)

    assert Counter(map(text, ours)) == Counter(map(text, theirs))


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: archive.name)
def test_an_image_survives_its_own_snapshot(archive: Path) -> None:
    image = replayed(recorded(archive)).image
    assert image.same_state(image_of(through_bytes(image)))


def test_what_no_part_of_this_node_uses_yet_is_kept() -> None:
    image = replayed(recorded()).image
    assert {record.principal for record in image.acls.values()} == {"User:alice", "User:eve"}
    assert set(image.scram_credentials) == {(1, "alice"), (2, "bob"), (2, "carol")}
    assert [record.owner for record in image.delegation_tokens.values()] == ["User:alice"]
    assert image.client_quotas == {
        (("user", "alice"),): {"producer_byte_rate": 1048576.0, "consumer_byte_rate": 2097152.0},
        (("client-id", "c1"), ("user", "bob")): {"request_percentage": 12.5},
        (("client-id", None),): {"producer_byte_rate": 777.0},
        (("ip", "10.0.0.9"),): {"connection_creation_rate": 5.0},
    }
    assert image.config(ConfigResource(ResourceType.GROUP, "grp")) == {"consumer.session.timeout.ms": "50000"}
    assert image.config(ConfigResource(ResourceType.CLIENT_METRICS, "metrics-sub")) == {
        "interval.ms": "30000",
        "metrics": "org.apache.kafka",
        "match": "client_id=x.*",
    }
    assert image.broker_config(None) == {"min.insync.replicas": "1", "log.retention.ms": "7000000"}
    assert image.broker_config(1) == {"message.max.bytes": "2000000"}
    assert image.next_producer_id == 1000
    assert sorted(image.topics) == ["alpha", "manual"]
    assert len(image.topics["manual"].partitions) == 4


def kept(image: MetadataImage) -> tuple[object, ...]:
    """Everything that a mere restart may not change."""
    return (
        image.features,
        {name: (topic.id, sorted(topic.partitions)) for name, topic in image.topics.items()},
        image.configs,
        image.client_quotas,
        image.acls,
        image.scram_credentials,
        image.delegation_tokens,
        image.next_producer_id,
    )


def node_on(archive: Path) -> MetadataNode:
    disk = recorded(archive)
    return MetadataNode(disk, texts=STATIC)


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: archive.name)
@on_loop
async def test_a_node_starts_on_kafkas_directory_and_leads_its_partitions(archive: Path) -> None:
    before = kept(replayed(recorded(archive)).image)
    node = node_on(archive)
    await node.start()
    assert kept(node.image) == before
    for topic in node.image.topics.values():
        for partition in topic.partitions.values():
            assert (partition.leader, partition.isr) == (1, (1,))
    await node.metadata.take_snapshot()
    await node.stop()
    again = node.restarted()
    await again.start()
    assert kept(again.image) == before


def test_directories_of_kafka_are_recognised() -> None:
    node = node_on(RECORDED)
    found = load_directories(node.disk, node.clock, node.entropy, node.config)
    assert found.cluster_id == "aGVhZHJhY2UtbWV0YWRhdGE"
    assert found.ids == {DATA: UUID("2b9dba4c-c153-61e4-4f3f-e02c61d1fb05")}
