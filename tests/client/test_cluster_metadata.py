"""What a client knows of a cluster: kept as far as it is used, and found again when all has changed."""

import asyncio
from typing import Any

import pytest

from headrace.client.errors import (
    BrokerRefused,
    NoLeader,
    UnknownTopics,
    Unreachable,
)
from headrace.client.metadata import Leader
from headrace.errors import ErrorCode
from headrace.protocol.api_table import ApiKey
from headrace.protocol.messages.fetch import NodeEndpoint
from headrace.protocol.messages.metadata import MetadataRequest
from tests.client.conftest import Run
from tests.support_client import (
    connected,
    fake_cluster,
    saying,
    soon,
)


def test_only_topics_in_use_are_asked_for_and_kept(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            for name in "abc":
                fake.create(name)
            async with connected(fake) as cluster:
                assert list(await cluster.topics(["a"])) == ["a"]
                await cluster.topics(["b"])
                await cluster.refresh()
                last: Any = fake.broker().seen[ApiKey.METADATA][-1]
                assert [topic.name for topic in last.topics] == ["a", "b"]
                assert not last.allow_auto_topic_creation
                assert sorted(cluster.metadata.topics) == ["a", "b"]
                assert sorted(await cluster.topics(None)) == ["a", "b", "c"]
                assert sorted(cluster.metadata.topics) == ["a", "b"]
                count = len(fake.broker().seen[ApiKey.METADATA])
                await cluster.topics(["a", "b"])
                assert len(fake.broker().seen[ApiKey.METADATA]) == count

    run(test())


def test_topics_that_nobody_uses_any_more_are_forgotten(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            fake.create("a")
            async with connected(fake) as cluster:
                await cluster.topics(["a"])
                cluster.in_use.use("a", asyncio.get_running_loop().time() - 400)
                await cluster.refresh()
                assert not cluster.metadata.topics
                await cluster.refresh()
                last: Any = fake.broker().seen[ApiKey.METADATA][-1]
                assert last.topics == []

    run(test())


def test_one_refresh_serves_all_who_wait_for_it(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake, connected(fake) as cluster:
            count = len(fake.broker().seen[ApiKey.METADATA])
            await soon(asyncio.gather(*(cluster.refresh() for _ in range(30))))
            assert len(fake.broker().seen[ApiKey.METADATA]) == count + 1

    run(test())


def test_metadata_are_refreshed_by_age(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            fake.create("a")
            async with connected(fake, metadata_max_age_ms=10) as cluster:
                await cluster.topics(["a"])
                await fake.broker().asked(ApiKey.METADATA, 5)
                fake.create("a", leaders=(1, 1))
                count = len(fake.broker().seen[ApiKey.METADATA])
                await fake.broker().asked(ApiKey.METADATA, count + 2)
                assert len(cluster.metadata.topics["a"].partitions) == 2

    run(test())


def test_a_missing_topic_is_told_with_a_similar_one(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            fake.create("orders")
            async with connected(fake) as cluster:
                with pytest.raises(
                    UnknownTopics, match=r"no topic 'ordres' \(did you mean 'orders'\?\)"
                ) as missing:
                    await soon(cluster.topics(["ordres"]))
                assert missing.value.names == ["ordres"]
                assert cluster.in_use.names() == []
                with pytest.raises(UnknownTopics):
                    await soon(cluster.leader("other", 0))

    run(test())


def test_a_topic_that_is_just_being_created_is_waited_for(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake, connected(fake, topic_wait_ms=20_000) as cluster:
            waiting = asyncio.create_task(cluster.topics(["new"]))
            await fake.broker().asked(ApiKey.METADATA, 4)
            fake.create("new")
            assert list(await soon(waiting)) == ["new"]

    run(test())


def test_brokers_create_topics_only_when_asked_to(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            fake.create("a")
            async with connected(fake) as cluster:
                await cluster.topics(["a"], create=True)
                last: Any = fake.broker().seen[ApiKey.METADATA][-1]
                assert last.allow_auto_topic_creation
                await cluster.refresh()
                last = fake.broker().seen[ApiKey.METADATA][-1]
                assert not last.allow_auto_topic_creation

    run(test())


def test_a_topic_that_may_not_be_seen_is_refused_at_once(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            fake.create("secret").error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            async with connected(fake) as cluster:
                with pytest.raises(BrokerRefused, match="'secret': TOPIC_AUTHORIZATION_FAILED"):
                    await soon(cluster.topics(["secret"]))

    run(test())


def test_a_leader_is_waited_for(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            fake.create("a", leaders=(-1,))
            async with connected(fake) as cluster:
                waiting = asyncio.create_task(cluster.leader("a", 0))
                await fake.broker(1).asked(ApiKey.METADATA, 4)
                fake.partition("a").leader = 1
                fake.partition("a").epoch = 3
                assert await soon(waiting) == Leader(1, 3)

    run(test())


def test_a_partition_without_leader_is_told_in_bounded_time(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            fake.create("a", leaders=(-1,))
            async with connected(fake, default_api_timeout_ms=50) as cluster:
                with pytest.raises(NoLeader, match="a-0 has no leader"):
                    await soon(cluster.leader("a", 0))
                with pytest.raises(NoLeader, match="the topic has 1 partitions"):
                    await soon(cluster.leader("a", 1))

    run(test())


def test_a_stale_topic_is_refreshed_when_it_is_used_next(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster(2) as fake:
            fake.create("a", leaders=(1,))
            async with connected(fake) as cluster:
                assert (await cluster.leader("a", 0)).node_id == 1
                fake.partition("a").leader, fake.partition("a").epoch = 2, 1
                assert (await cluster.leader("a", 0)).node_id == 1
                cluster.stale("a")
                assert await cluster.leader("a", 0) == Leader(2, 1)

    run(test())


def test_an_older_leader_is_not_believed(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster(2) as fake:
            fake.create("a", leaders=(2,), epoch=5)
            async with connected(fake) as cluster:
                assert await cluster.leader("a", 0) == Leader(2, 5)
                fake.partition("a").leader, fake.partition("a").epoch = 1, 4
                await cluster.refresh()
                assert await cluster.leader("a", 0) == Leader(2, 5)
                fake.create("a", leaders=(1,), epoch=0)
                await cluster.refresh()
                assert await cluster.leader("a", 0) == Leader(1, 0)

    run(test())


def test_hints_of_brokers_are_taken_unless_they_are_old(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster(2) as fake:
            fake.create("a", leaders=(1,), epoch=5)
            async with connected(fake) as cluster:
                await cluster.leader("a", 0)
                cluster.learn_leader("a", 0, 2, 5)
                assert await cluster.leader("a", 0) == Leader(1, 5)
                cluster.learn_leader("a", 0, 2, 6)
                assert await cluster.leader("a", 0) == Leader(2, 6)
                cluster.learn_leader("a", 0, 9, 7)
                assert await cluster.leader("a", 0) == Leader(2, 6)
                cluster.learn_leader("a", 0, 9, 7, [NodeEndpoint(node_id=9, host="h", port=1)])
                assert await cluster.leader("a", 0) == Leader(9, 7)
                cluster.learn_leader("unknown", 0, 1, 7)

    run(test())


def test_when_no_known_broker_answers_the_bootstrap_servers_are_asked_again(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster(3) as fake:
            fake.broker(3).is_listed = False
            fake.create("a")
            async with connected(fake, bootstrap_servers=[fake.broker(3).address]) as cluster:
                assert sorted(cluster.metadata.brokers) == [1, 2]
                await cluster.topics(["a"])
                fake.broker(3).is_listed = True
                fake.partition("a").leader, fake.partition("a").epoch = 3, 1
                for gone in (1, 2):
                    fake.broker(gone).is_listed = False
                    await fake.broker(gone).stop()
                await cluster.refresh()
                assert sorted(cluster.metadata.brokers) == [3]
                assert await cluster.leader("a", 0) == Leader(3, 1)

    run(test())


def test_without_rebootstrap_only_known_brokers_are_asked(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster(2) as fake:
            fake.broker(2).is_listed = False
            options: dict[str, Any] = {
                "bootstrap_servers": [fake.broker(2).address],
                "metadata_recovery_strategy": "none",
            }
            async with connected(fake, **options) as cluster:
                await fake.broker(1).stop()
                with pytest.raises(Unreachable, match="none of the cluster's brokers can be reached"):
                    await soon(cluster.refresh())

    run(test())


def test_a_broker_may_tell_to_bootstrap_again(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster(2) as fake:
            fake.broker(2).is_listed = False
            async with connected(fake, bootstrap_servers=[fake.broker(2).address]) as cluster:
                required = fake._metadata(MetadataRequest(topics=[]))
                required.error_code = ErrorCode.REBOOTSTRAP_REQUIRED
                fake.broker(1).next(ApiKey.METADATA, saying(required))
                count = len(fake.broker(2).seen[ApiKey.METADATA])
                await soon(cluster.refresh())
                assert len(fake.broker(2).seen[ApiKey.METADATA]) == count + 1

    run(test())


def test_a_broker_that_moved_is_talked_to_at_its_new_address(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster(2) as fake, connected(fake) as cluster:
            await cluster.send(1, MetadataRequest(topics=[]))
            await fake.broker(1).stop()
            fake.broker(1).port = 0
            await fake.broker(1).start()
            await soon(cluster.refresh())
            assert (await soon(cluster.send(1, MetadataRequest(topics=[])))).cluster_id == fake.cluster_id

    run(test())


def test_a_broker_that_is_not_in_the_cluster_is_unreachable(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake, connected(fake) as cluster:
            with pytest.raises(Unreachable, match="the cluster has no broker 7"):
                await cluster.send(7, MetadataRequest(topics=[]))

    run(test())


def test_any_broker_that_answers_will_do(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster(3) as fake, connected(fake) as cluster:
            await fake.broker(1).stop()
            await fake.broker(3).stop()
            for _ in range(5):
                reply = await soon(cluster.send_any(MetadataRequest(topics=[])))
                assert reply.cluster_id == fake.cluster_id

    run(test())
