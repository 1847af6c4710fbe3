"""One Spark session and one node for all tests of this room."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support_node import RunningNode
    from tests.support_spark import Topics


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that use the session run one after the other in one process: one engine is enough."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """A session that knows the format."""
    from headrace.cli.stream_demo.java import why_no_spark
    from tests.support_spark import start_spark

    reason = why_no_spark(os.environ)
    if reason is not None:
        pytest.skip(reason)
    import headrace.spark

    session = start_spark(tmp_path_factory.mktemp("spark"))
    headrace.spark.register(session)
    yield session
    session.stop()


@pytest.fixture
def topics(shared_node: "RunningNode") -> "Topics":
    """Topics of the node that tests share."""
    from tests.support_spark import Topics

    return Topics(shared_node.bootstrap)


@pytest.fixture
def topic(topics: "Topics", request: pytest.FixtureRequest) -> str:
    """A topic of two partitions with nothing in it."""
    name = "".join(part[:4] for part in request.node.name.split("_"))[:60]
    return topics.create("".join(c if c.isalnum() else "-" for c in name), 2, retention_ms="-1")
