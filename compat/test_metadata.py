"""Metadata beside Kafka's own: snapshots it loads, directories it formats and starts on, and the way back."""

import asyncio
from pathlib import Path

import pytest

from compat.kafka_libs import RunJava
from compat.kafka_peer import CLUSTER_ID, ONE_BROKER, KafkaPeer
from headrace.config.node import NodeConfig
from headrace.log.checkpoints import remove_clean_shutdown, write_clean_shutdown
from headrace.metadata.bootstrap import read_bootstrap
from headrace.metadata.format import format_directories, format_plan, storage_info
from headrace.metadata.image import MetadataImage
from headrace.metadata.service import MetadataService
from headrace.metadata.snapshot import snapshot_records
from headrace.metadata.store import MetadataStore
from headrace.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from headrace.protocol.prefixed import encode_metadata_record
from headrace.raft.batches import ControlBatch, DataBatch, read_batches
from headrace.raft.snapshots import SnapshotBuilder, read_snapshot
from headrace.system.clock import SystemClock
from headrace.system.disk import RealDisk
from headrace.system.entropy import SystemEntropy
from tests.support_archives import unpack_archive

RECORDED = Path(__file__).parent.parent / "tests" / "metadata" / "kafka-4.3.1-metadata.tar.gz"
VOTERS = "controller.quorum.voters"
BOOTSTRAP_SNAPSHOT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"


class OurNode:
    """Headrace's metadata on a directory that a Kafka may use as well."""

    def __init__(self, properties: dict[str, str]) -> None:
        self.config = NodeConfig(properties)
        self.disk = RealDisk()
        self.clock = SystemClock()
        self.entropy = SystemEntropy()

    def format(self, *, release: str | None = None, standalone: bool = False) -> None:
        plan = format_plan(self.config, CLUSTER_ID, self.entropy, release=release, standalone=standalone)
        list(format_directories(self.disk, self.clock, self.entropy, plan))

    async def live(self, *topics: str, killed: bool = False, snapshot: bool = True) -> MetadataImage:
        """One life: start, create topics, take a snapshot, stop or be killed; the last image."""
        metadata = await MetadataService.open(self.disk, self.clock, self.entropy, self.config)
        for directory in self.config.log_dirs:
            remove_clean_shutdown(self.disk, directory)
        await metadata.start_broker()
        for name in topics:
            await metadata.controller.create_topics(_request(name))
        if not killed:
            await metadata.stop_broker()
        if snapshot:
            await metadata.take_snapshot()
        if not killed:
            for directory in self.config.log_dirs:
                write_clean_shutdown(self.disk, directory, metadata.broker_epoch)
            await metadata.close()
        return metadata.image


def _request(name: str) -> CreateTopicsRequest:
    configs = [CreatableTopicConfig(name="retention.ms", value="123456")]
    topic = CreatableTopic(name=name, num_partitions=2, replication_factor=1, configs=configs)
    return CreateTopicsRequest(topics=[topic])


def lasting(image: MetadataImage) -> tuple[object, ...]:
    """What no restart may change."""
    return (
        image.features,
        {name: (topic.id, len(topic.partitions)) for name, topic in image.topics.items()},
        image.configs,
        image.client_quotas,
        image.acls,
        image.scram_credentials,
        image.delegation_tokens,
        image.next_producer_id,
    )


def test_kafka_loads_our_snapshots_to_the_image_of_its_own(run_java: RunJava, tmp_path: Path) -> None:
    unpack_archive(RECORDED, tmp_path)
    log = tmp_path / "data" / "__cluster_metadata-0"
    theirs = sorted(log.glob("*.checkpoint"))[-1]
    offset = int(theirs.name[:20])
    of_the_log, of_the_snapshot = MetadataStore(), MetadataStore()
    for batch in read_batches((log / "00000000000000000000.log").read_bytes()):
        if batch.last_offset < offset:
            of_the_log.on_committed(batch)
    for batch in read_batches(theirs.read_bytes()):
        if isinstance(batch, DataBatch):
            of_the_snapshot.on_snapshot_batch(batch)
    paths = [str(theirs)]
    for store in (of_the_log, of_the_snapshot):
        builder = SnapshotBuilder(0, 0)
        builder.add(encode_metadata_record(*each) for each in snapshot_records(store.image))
        path = tmp_path / f"ours-{len(paths)}.checkpoint"
        path.write_bytes(builder.finish())
        paths.append(str(path))
    done = run_java("MetadataImages.java", *paths)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["same", "same"]


@pytest.mark.parametrize("arguments", [(), ("--release-version", "4.0"), ("--release-version", "3.6")])
def test_a_static_node_is_formatted_as_kafka_formats_it(
    kafka_libs: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    peer = KafkaPeer(tmp_path / "kafka", ONE_BROKER)
    peer.format(*arguments)
    node = OurNode(peer.properties | {"log.dirs": str(tmp_path / "ours")})
    node.format(release=arguments[1] if arguments else None)
    theirs, ours = str(peer.data_dir), str(tmp_path / "ours")
    assert read_bootstrap(node.disk, ours) == read_bootstrap(node.disk, theirs)
    assert node.disk.list_directory(ours) == node.disk.list_directory(theirs)
    assert storage_info(node.disk, node.config)[1] == 0


def test_a_standalone_node_is_formatted_as_kafka_formats_it(kafka_libs: Path, tmp_path: Path) -> None:
    peer = standalone_peer(tmp_path / "kafka")
    peer.format("--standalone")
    node = OurNode(peer.properties | {"log.dirs": str(tmp_path / "ours")})
    node.format(standalone=True)

    def told(directory: Path) -> list[str]:
        found = []
        for batch in read_snapshot(node.disk, str(directory / BOOTSTRAP_SNAPSHOT)):
            assert isinstance(batch, ControlBatch)
            for record in batch.records:
                text = repr(record.message)
                for voter in getattr(record.message, "voters", ()):
                    text = text.replace(repr(voter.voter_directory_id), "ID")
                found.append(text.partition("last_contained_log_timestamp")[0])
        return found

    assert told(tmp_path / "ours") == told(peer.data_dir)


def standalone_peer(directory: Path) -> KafkaPeer:
    peer = KafkaPeer(directory, ONE_BROKER)
    bootstrap = {"controller.quorum.bootstrap.servers": f"{peer.host}:{peer.controller_port}"}
    properties = {key: text for key, text in peer.properties.items() if key != VOTERS} | bootstrap
    peer.properties = properties
    lines = (f"{name}={text}\n" for name, text in properties.items())
    peer.properties_file.write_text("".join(lines), encoding="utf-8")
    return peer


@pytest.mark.parametrize(
    ("release", "standalone"), [("4.3", False), ("4.3", True), ("4.0", False), ("3.9", True), ("3.5", False)]
)
def test_kafka_and_headrace_take_turns_on_one_directory(
    kafka_libs: Path, tmp_path: Path, release: str, standalone: bool
) -> None:
    directory = tmp_path / "kafka"
    peer = standalone_peer(directory) if standalone else KafkaPeer(directory, ONE_BROKER)
    node = OurNode(peer.properties)
    node.format(release=release, standalone=standalone)
    known = lasting(asyncio.run(node.live("first")))
    for topic, killed in (("second", False), ("third", True)):
        peer.start()
        if killed:
            peer.kill()
        else:
            peer.stop()
        after = asyncio.run(node.live(snapshot=False))
        assert lasting(after) == known
        assert all(
            partition.leader == -1 for each in after.topics.values() for partition in each.partitions.values()
        )
        known = lasting(asyncio.run(node.live(topic, killed=killed)))
    peer.start()
    peer.stop()
    assert lasting(asyncio.run(node.live())) == known
    assert {"first", "second", "third"} <= set(asyncio.run(node.live()).topics)
