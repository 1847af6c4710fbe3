"""Settings for all tests, and a node for those that need a real one."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from tests.support_node import RunningNode

# How long an example takes says more about the machine than about the code.
settings.register_profile("headrace", deadline=None)
settings.load_profile("headrace")

# In the background, or under nohup, these are ignored, and would be by every process that a test starts and
# means to stop with one of them. A handler that does nothing is the same for the tests and is not inherited.
for _number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, lambda number, frame: None)


@pytest.fixture
def start_node(tmp_path: Path) -> "Iterator[Callable[..., RunningNode]]":
    """Starts nodes, each in a process and a directory of its own; keywords are keys of their configuration,
    with underscores for dots."""
    from tests.support_node import RunningNode

    nodes: list[RunningNode] = []

    def start(**overrides: str) -> RunningNode:
        keys = {name.replace("_", "."): value for name, value in overrides.items()}
        node = RunningNode(tmp_path / f"node-{len(nodes)}", keys)
        nodes.append(node)
        return node.start()

    yield start
    for node in nodes:
        node.kill()


@pytest.fixture
def headrace_node(start_node: "Callable[..., RunningNode]") -> "RunningNode":
    """A running node with nothing in it."""
    return start_node()


@pytest.fixture(scope="session")
def shared_node(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[RunningNode]":
    """A node that many tests use at once: each has topics of its own, and nobody stops it."""
    from tests.support_node import RunningNode

    node = RunningNode(tmp_path_factory.mktemp("shared-node"))
    node.start()
    yield node
    node.kill()
