"""Nodes for the scenarios: one to share, and a fresh one for each that needs it, both as Kafka was set up."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.answers.recording import recorded_properties
from tests.answers.session import Target
from tests.support_answers import free_ports
from tests.support_node import CLUSTER_ID, HOST, RunningNode


@contextmanager
def running_target(directory: Path) -> Iterator[Target]:
    port, controller_port = free_ports(2)
    addresses = {
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "controller.quorum.voters": f"1@{HOST}:{controller_port}",
    }
    node = RunningNode(directory, {**recorded_properties(), **addresses})
    try:
        node.start()
        yield Target(node.host, node.port, controller_port, str(node.data_dir), CLUSTER_ID)
    finally:
        node.kill()


@pytest.fixture(scope="session")
def shared_target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with running_target(tmp_path_factory.mktemp("answers")) as target:
        yield target


@pytest.fixture
def own_target(tmp_path: Path) -> Iterator[Target]:
    with running_target(tmp_path) as target:
        yield target
