"""Whoever says how long an operation may take is answered by then, whatever is wrong with the brokers."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from headrace.client.admin.committed_offsets import commit_offsets, committed_offsets, delete_offsets
from headrace.client.admin.configs import ConfigResource, ResourceKind, alter_configs, describe_configs
from headrace.client.admin.groups import delete_groups, describe_groups, list_groups
from headrace.client.admin.records import delete_records
from headrace.client.admin.topics import NewTopic, create_topics, delete_topics
from headrace.client.cluster import Cluster
from headrace.client.errors import ConnectionLost, NoLeader, RequestTimedOut, UnknownTopics, Unreachable
from headrace.client.offsets import LATEST, list_offsets
from headrace.protocol.api_table import ApiKey
from headrace.types import TopicPartition
from tests.client.conftest import Run
from tests.support_client import connected, fake_cluster, hang_up, silence, soon

A0 = TopicPartition("a", 0)
NEVER = 10**9
SHORT_MS = 100
TOPIC = ConfigResource(ResourceKind.TOPIC, "a")

Call = Callable[[Cluster], Awaitable[object]]
CALLS: dict[str, Call] = {
    "list_offsets": lambda cluster: list_offsets(cluster, {A0: LATEST}, timeout_ms=SHORT_MS),
    "create_topics": lambda cluster: create_topics(cluster, [NewTopic("n")], timeout_ms=SHORT_MS),
    "delete_topics": lambda cluster: delete_topics(cluster, ["a"], timeout_ms=SHORT_MS),
    "describe_configs": lambda cluster: describe_configs(cluster, [TOPIC], timeout_ms=SHORT_MS),
    "alter_configs": lambda cluster: alter_configs(cluster, {TOPIC: []}, timeout_ms=SHORT_MS),
    "list_groups": lambda cluster: list_groups(cluster, timeout_ms=SHORT_MS),
    "describe_groups": lambda cluster: describe_groups(cluster, ["g"], timeout_ms=SHORT_MS),
    "delete_groups": lambda cluster: delete_groups(cluster, ["g"], timeout_ms=SHORT_MS),
    "committed_offsets": lambda cluster: committed_offsets(cluster, "g", timeout_ms=SHORT_MS),
    "commit_offsets": lambda cluster: commit_offsets(cluster, "g", {A0: 1}, timeout_ms=SHORT_MS),
    "delete_offsets": lambda cluster: delete_offsets(cluster, "g", [A0], timeout_ms=SHORT_MS),
    "delete_records": lambda cluster: delete_records(cluster, {A0: 1}, timeout_ms=SHORT_MS),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_cluster_that_is_gone_is_told_in_the_time_given(run: Run, name: str) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            fake.create("a")
            async with connected(fake, default_api_timeout_ms=NEVER) as cluster:
                await cluster.topics(["a"])
                await fake.broker().stop()
                with pytest.raises((Unreachable, ConnectionLost)):
                    await soon(CALLS[name](cluster))

    run(test())


def test_a_partition_without_leader_is_told_in_the_time_given(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            fake.create("a", leaders=(-1,))
            async with connected(fake, default_api_timeout_ms=NEVER) as cluster:
                with pytest.raises(NoLeader, match="a-0"):
                    await soon(list_offsets(cluster, {A0: LATEST}, timeout_ms=SHORT_MS))

    run(test())


@asynccontextmanager
async def mute_server() -> AsyncIterator[str]:
    """Accepts connections and says nothing."""

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


def test_a_bootstrap_server_that_says_nothing_is_given_up_in_time(run: Run) -> None:
    async def test() -> None:
        async with mute_server() as address, fake_cluster() as fake:
            config = fake.config(
                bootstrap_servers=[address],
                default_api_timeout_ms=SHORT_MS,
                socket_connection_setup_timeout_ms=NEVER,
                socket_connection_setup_timeout_max_ms=NEVER,
            )
            with pytest.raises(Unreachable, match=f"{address}: no connection within {SHORT_MS} ms"):
                await soon(Cluster(config).start())

    run(test())


def test_what_was_found_out_is_told_though_the_last_attempt_was_cut_short(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            broker = fake.broker()
            broker.next(ApiKey.API_VERSIONS, hang_up, *[silence] * 100)
            config = fake.config(
                default_api_timeout_ms=SHORT_MS,
                socket_connection_setup_timeout_ms=NEVER,
                socket_connection_setup_timeout_max_ms=NEVER,
                request_timeout_ms=100_000,
            )
            with pytest.raises(Unreachable, match=broker.address):
                await soon(Cluster(config).start())

    run(test())


def test_a_broker_that_greets_and_then_says_nothing_is_given_up_in_time(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            fake.broker().next(ApiKey.METADATA, *[silence] * 100)
            cluster = Cluster(fake.config(default_api_timeout_ms=SHORT_MS, request_timeout_ms=100_000))
            with pytest.raises(Unreachable, match="did not answer Metadata within"):
                await soon(cluster.start())

    run(test())


def test_a_request_waits_for_its_connection_no_longer_than_for_its_reply(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            fake.create("a")
            setup_ms = {
                "socket_connection_setup_timeout_ms": NEVER,
                "socket_connection_setup_timeout_max_ms": NEVER,
            }
            async with connected(fake, default_api_timeout_ms=NEVER, **setup_ms) as cluster:
                await cluster.topics(["a"])
                fake.broker().next(ApiKey.API_VERSIONS, *[silence] * 100)
                fake.broker().hang_up()
                await fake.broker().left_by(1)
                with pytest.raises((Unreachable, ConnectionLost, RequestTimedOut)):
                    await soon(list_offsets(cluster, {A0: LATEST}, timeout_ms=SHORT_MS))

    run(test())


def test_a_topic_is_not_called_unknown_while_nobody_can_be_asked(run: Run) -> None:
    async def test() -> None:
        async with (
            fake_cluster() as fake,
            connected(fake, topic_wait_ms=0, default_api_timeout_ms=SHORT_MS) as cluster,
        ):
            await fake.broker().stop()
            with pytest.raises(Unreachable):
                await soon(cluster.topics(["a"]))
            await fake.broker().start()
            with pytest.raises(UnknownTopics):
                await soon(cluster.topics(["a"], patience=cluster.patience(NEVER)))

    run(test())
