"""What the end-to-end tests share: a client of each kind, and topics of their own."""

from collections.abc import Callable
from uuid import uuid4

import pytest

from tests.support_e2e import CLIENTS, Client, create_topic
from tests.support_node import RunningNode


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """kafka-python reads its own files in an outdated way, which is not ours to mend."""
    for item in items:
        item.add_marker(
            pytest.mark.filterwarnings(r"ignore:\w+ is deprecated. Use files\(\) instead:DeprecationWarning")
        )


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest, shared_node: RunningNode) -> Client:
    """Each of the clients in turn."""
    return CLIENTS[request.param](shared_node.bootstrap)


@pytest.fixture
def new_topic(shared_node: RunningNode) -> Callable[..., str]:
    """Creates topics that nobody else knows, on the shared node."""

    def create(partitions: int = 1, **config: str) -> str:
        return create_topic(shared_node.bootstrap, f"t-{uuid4()}", partitions, **config)

    return create


@pytest.fixture
def topic(new_topic: Callable[..., str]) -> str:
    """A topic of one partition on the shared node."""
    return new_topic()
