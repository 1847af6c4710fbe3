"""Our client against three Kafka brokers: leaders that move, brokers that go, replicas nearby."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Producer

from compat.kafka_peer import CLUSTER_ID, HOST, KafkaPeer
from compat.support_client import PATIENCE_SECONDS, config, create_topic, run
from headrace.client.cluster import Cluster
from headrace.client.column_reader import ColumnReader, Columns
from headrace.client.config import ClientConfig
from headrace.client.metadata import NO_NODE
from headrace.types import TopicPartition

SETTINGS = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "controlled.shutdown.enable": "true",
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "500",
}


def broker_beside(first: KafkaPeer, node_id: int, directory: Path) -> KafkaPeer:
    """Another broker of the same cluster."""
    peer = KafkaPeer(directory)
    properties = SETTINGS | {
        "process.roles": "broker",
        "node.id": str(node_id),
        "broker.rack": f"rack-{node_id}",
        "listeners": f"PLAINTEXT://{HOST}:{peer.port}",
        "controller.quorum.voters": f"1@{HOST}:{first.controller_port}",
    }
    return KafkaPeer(directory, properties, port=peer.port, controller_port=first.controller_port)


@pytest.fixture(scope="module")
def brokers(kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[int, KafkaPeer]]:
    """Node 1 is controller and broker, nodes 2 and 3 are brokers."""
    first = KafkaPeer(tmp_path_factory.mktemp("kafka-1"), SETTINGS | {"broker.rack": "rack-1"})
    peers = {1: first}
    for node_id in (2, 3):
        peers[node_id] = broker_beside(first, node_id, tmp_path_factory.mktemp(f"kafka-{node_id}"))
    with ExitStack() as stack:
        for peer in peers.values():
            peer.format(cluster_id=CLUSTER_ID)
            peer.start()
            stack.callback(peer.kill)
        yield peers


def produce(addresses: str, name: str, first: int, count: int, partitions: int) -> None:
    producer = Producer({"bootstrap.servers": addresses, "acks": "all", "linger.ms": 0})
    for number in range(first, first + count):
        for partition in range(partitions):
            producer.produce(name, b"%d" % number, partition=partition)
    assert producer.flush(PATIENCE_SECONDS) == 0


def test_the_replica_in_ones_own_rack_is_read_from(brokers: dict[int, KafkaPeer]) -> None:
    create_topic(brokers[1].address, "near", partitions=3, replication=3)
    produce(brokers[1].address, "near", 0, 100, 3)

    async def test() -> None:
        partitions = [TopicPartition("near", number) for number in range(3)]
        async with Cluster(config(brokers[1].address, client_rack="rack-3", fetch_max_wait_ms=50)) as cluster:
            reader = ColumnReader(cluster, dict.fromkeys(partitions, 0), until=dict.fromkeys(partitions, 100))
            async with reader:
                found = [columns async for columns in reader]
                replicas = {state.partition: state.replica for state in reader._states.values()}
            assert sum(map(len, found)) == 300
            for partition in partitions:
                leader = (await cluster.leader(*partition)).node_id
                assert replicas[partition] == (NO_NODE if leader == 3 else 3)

    run(test())


def test_a_reader_follows_leaders_while_brokers_go_and_come(brokers: dict[int, KafkaPeer]) -> None:
    partitions = [TopicPartition("moving", number) for number in range(6)]
    create_topic(brokers[1].address, "moving", partitions=6, replication=3, min_insync_replicas="1")
    addresses = ",".join(peer.address for peer in brokers.values())

    async def read(reader: ColumnReader, found: dict[TopicPartition, list[bytes]], count: int) -> None:
        while any(len(values) < count for values in found.values()):
            columns: Columns | None = await reader.next()
            assert columns is not None
            partition = TopicPartition(columns.topic, columns.partition)
            assert columns.start == len(found[partition])
            found[partition] += columns.batch.column("value").to_pylist()

    async def test() -> None:
        found: dict[TopicPartition, list[bytes]] = {each: [] for each in partitions}
        epochs: list[int] = []
        async with (
            Cluster(ClientConfig.from_properties({"bootstrap.servers": addresses})) as cluster,
            ColumnReader(cluster, dict.fromkeys(partitions, 0)) as reader,
        ):
            for turn, node_id in enumerate((2, 3, 2)):
                await asyncio.to_thread(produce, addresses, "moving", turn * 200, 100, 6)
                peer = brokers[node_id]
                await asyncio.to_thread(peer.kill if turn == 1 else peer.stop)
                await asyncio.to_thread(produce, addresses, "moving", turn * 200 + 100, 100, 6)
                await read(reader, found, (turn + 1) * 200)
                await asyncio.to_thread(peer.start)
                await cluster.refresh()
                epochs.append(sum([(await cluster.leader(*each)).epoch for each in partitions]))
        expected = [b"%d" % number for number in range(600)]
        assert all(values == expected for values in found.values())
        assert epochs[-1] > 0

    run(test())
