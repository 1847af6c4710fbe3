"""What changes while a node runs: its configuration, its listeners, its metrics, its directories."""

import re
import socket
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from headrace.config.alteration import ResourceType
from headrace.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from headrace.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.support_e2e import PATIENCE_SECONDS, ConfluentClient, DeliveryFailed, Seen, Sent, create_topic
from tests.support_node import HOST, RawClient, RunningNode

ALL_BROKERS = ""
SET, DELETE = 0, 1
HELLO = ApiVersionsRequest(client_software_name="tests", client_software_version="1")


def alter_broker(node: RunningNode, name: str, **changes: str | None) -> None:
    """Set (or with None delete) keys at run time, for one broker or for all."""
    configs = [
        AlterableConfig(
            name=key.replace("_", "."), value=value, config_operation=DELETE if value is None else SET
        )
        for key, value in changes.items()
    ]
    resource = AlterConfigsResource(resource_type=ResourceType.BROKER, resource_name=name, configs=configs)
    with node.connect() as client:
        request = IncrementalAlterConfigsRequest(resources=[resource])
        reply = client.ask(request, 1, IncrementalAlterConfigsResponse)
    assert [each.error_code for each in reply.responses] == [0], reply


def is_answered(host: str, port: int) -> bool:
    """Whether a node answers a first request there."""
    with socket.create_connection((host, port), timeout=PATIENCE_SECONDS) as sock:
        try:
            return RawClient(sock).ask(HELLO, 3, ApiVersionsResponse).error_code == 0
        except (EOFError, ConnectionResetError):
            return False


def test_defaults_of_topics_change_without_a_restart(headrace_node: RunningNode) -> None:
    client = ConfluentClient(headrace_node.bootstrap)
    topic = create_topic(headrace_node.bootstrap, "limited")
    large = Sent(b"x" * 2000)
    alter_broker(headrace_node, ALL_BROKERS, message_max_bytes="1000")
    with pytest.raises(DeliveryFailed):
        client.produce(topic, [large])
    alter_broker(headrace_node, "1", message_max_bytes="5000")
    assert client.produce(topic, [large]) == [0]
    alter_broker(headrace_node, "1", message_max_bytes=None)
    alter_broker(headrace_node, ALL_BROKERS, message_max_bytes=None)
    headrace_node.restart()
    assert client.produce(topic, [large]) == [1]


def test_a_changed_configuration_is_logged_key_by_key(headrace_node: RunningNode) -> None:
    alter_broker(headrace_node, "1", log_retention_ms="12345")
    headrace_node.wait_for(r"configuration log\.retention\.ms is now 12345")
    alter_broker(headrace_node, "1", log_retention_ms=None)
    headrace_node.wait_for(r"configuration log\.retention\.ms is now back to its default")


def test_the_limit_of_an_address_changes_without_a_restart(headrace_node: RunningNode) -> None:
    alter_broker(headrace_node, "1", max_connections_per_ip_overrides=f"{HOST}:0")
    assert not is_answered(headrace_node.host, headrace_node.port)
    headrace_node.wait_for(r"refused a connection from 127\.0\.0\.1")


def test_a_listener_comes_and_goes_without_a_restart(start_node: Callable[..., RunningNode]) -> None:
    node = start_node(
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,SECOND:PLAINTEXT,CONTROLLER:PLAINTEXT",
        advertised_listeners=f"PLAINTEXT://{HOST}:0",
    )
    present = f"PLAINTEXT://{HOST}:{node.port}"
    with socket.create_server((HOST, 0)) as free:
        port = free.getsockname()[1]
    alter_broker(node, "1", listeners=f"{present},SECOND://{HOST}:{port},CONTROLLER://{HOST}:0")
    node.wait_for(rf"listener SECOND accepts connections on {HOST} port {port}")
    assert is_answered(HOST, port)
    alter_broker(node, "1", listeners=f"{present},CONTROLLER://{HOST}:0")
    node.wait_for("listener SECOND accepts no more connections")
    with pytest.raises(ConnectionRefusedError):
        is_answered(HOST, port)


def metrics_of(node: RunningNode) -> dict[str, float]:
    """Every value that Prometheus would read, by name and labels."""
    with urllib.request.urlopen(f"http://{HOST}:{node.metrics_port}/metrics") as page:
        lines = page.read().decode().splitlines()
    return {
        name: float(value)
        for name, value in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    }


def test_prometheus_reads_what_clients_did(headrace_node: RunningNode) -> None:
    client = ConfluentClient(headrace_node.bootstrap)
    topic = create_topic(headrace_node.bootstrap, "measured")
    client.produce(topic, [Sent(b"v" * 100) for _ in range(10)])
    client.consume(topic, 10)
    with pytest.raises(Exception, match="already exists"):
        create_topic(headrace_node.bootstrap, topic)
    metrics = metrics_of(headrace_node)
    own = '{topic="measured"}'
    partition = '{topic="measured",partition="0"}'
    assert metrics[f"kafka_server_brokertopicmetrics_messagesin_total{own}"] == 10
    assert metrics[f"kafka_server_brokertopicmetrics_bytesin_total{own}"] > 1000
    assert metrics[f"kafka_server_brokertopicmetrics_bytesout_total{own}"] > 1000
    assert metrics[f"kafka_log_log_logendoffset{partition}"] == 10
    assert metrics[f"kafka_log_log_size{partition}"] > 1000
    assert metrics['kafka_network_requestmetrics_requests_total{request="Produce",role="broker"}'] >= 1
    assert metrics['kafka_network_requestmetrics_totaltimems_count{request="Fetch",role="broker"}'] >= 1
    created = 'kafka_network_requestmetrics_errors_total{request="CreateTopics",role="broker",'
    assert metrics[f'{created}error="TOPIC_ALREADY_EXISTS"}}'] == 1
    assert metrics['kafka_server_socket_server_metrics_incoming_byte_total{listener="PLAINTEXT"}'] > 0
    assert metrics["kafka_controller_kafkacontroller_activecontrollercount"] == 1
    assert 0 <= metrics["kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent"] <= 1
    assert 1e7 < metrics["process_resident_memory_bytes"] < 2e8


def test_there_is_nothing_to_read_unless_a_port_is_set(start_node: Callable[..., RunningNode]) -> None:
    node = start_node(headrace_metrics_port="-1")
    assert node.metrics_port == 0
    assert "metrics:" not in node.output


@pytest.fixture
def two_directories(start_node: Callable[..., RunningNode], tmp_path: Any) -> RunningNode:
    return start_node(log_dirs=f"{tmp_path / 'first'},{tmp_path / 'second'}")


def test_partitions_spread_over_directories_and_the_metadata_says_where(
    two_directories: RunningNode, tmp_path: Any
) -> None:
    topic = create_topic(two_directories.bootstrap, "spread", 4)
    client = ConfluentClient(two_directories.bootstrap)
    client.produce(topic, [Sent(b"%d" % number, partition=number) for number in range(4)])
    homes = {
        each: sorted(path.name for path in (tmp_path / each).glob("spread-*")) for each in ("first", "second")
    }
    assert [len(found) for found in homes.values()] == [2, 2]
    two_directories.restart(hard=True)
    for number in range(4):
        assert client.consume(topic, 1, partition=number) == [Seen(0, b"%d" % number)]
    dump = dumped_metadata(tmp_path / "first")
    assigned = re.findall(r'"type":"PARTITION_CHANGE_RECORD".*?"directories":\["([\w-]+)"\]', dump)
    ids = {each: directory_id(tmp_path / each) for each in ("first", "second")}
    assert set(assigned) == set(ids.values())


def directory_id(directory: Any) -> str:
    found = re.search(r"directory\.id=(\S+)", (directory / "meta.properties").read_text())
    assert found
    return found[1]


def dumped_metadata(directory: Any) -> str:
    from tests.support_node import headrace

    log = directory / "__cluster_metadata-0" / f"{0:020d}.log"
    return headrace("log", "dump", "--cluster-metadata", str(log)).stdout
