"""A cluster: found from any address, and talked to whatever happens to connections."""

import asyncio
import gc
import warnings
from typing import Any

import pytest

from headrace import __version__
from headrace.client.backoff import backoff_ms
from headrace.client.cluster import Cluster
from headrace.client.errors import (
    BrokerRefused,
    ClientClosed,
    ConnectionLost,
    RequestTimedOut,
    Unreachable,
    UnsupportedByBroker,
)
from headrace.errors import ErrorCode
from headrace.protocol.api_table import ApiKey
from headrace.protocol.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from headrace.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from headrace.protocol.messages.metadata import MetadataRequest, MetadataResponse
from headrace.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from headrace.testing.entropy import SeededEntropy
from tests.client.conftest import Run
from tests.support_client import (
    FakeBroker,
    FakeCluster,
    connected,
    fake_cluster,
    half_a_reply,
    hang_up,
    in_crumbs,
    raw,
    saying,
    silence,
    soon,
    when,
    wrong_id,
)

DEAD = "127.0.0.1:1"


def test_any_address_of_several_is_enough(run: Run) -> None:
    async def test() -> None:
        async with (
            fake_cluster(2) as fake,
            connected(fake, bootstrap_servers=[DEAD, "no-such-host.invalid:9", *fake.bootstrap]) as cluster,
        ):
            assert cluster.cluster_id == fake.cluster_id
            assert sorted(cluster.metadata.brokers) == [1, 2]
            assert cluster.metadata.brokers[2].port == fake.broker(2).port

    run(test())


def test_a_bootstrap_server_that_hangs_costs_little(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster(2) as fake:
            fake.broker(1).next(ApiKey.API_VERSIONS, *[silence] * 20)
            fake.broker(1).is_listed = False
            async with connected(fake) as cluster:
                assert sorted(cluster.metadata.brokers) == [2]

    run(test())


def test_if_nobody_answers_the_error_tells_what_was_tried(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            config = fake.config(bootstrap_servers=[DEAD, "localhost:2"], default_api_timeout_ms=30)
            cluster = Cluster(config)
            with pytest.raises(Unreachable) as failure:
                await soon(cluster.start())
            assert "bootstrap.servers=127.0.0.1:1,localhost:2" in str(failure.value)
            assert "127.0.0.1:1: Connection refused" in str(failure.value)
            assert set(failure.value.attempts) == {DEAD, "localhost:2"}

    run(test())


def test_a_broker_that_is_just_starting_is_waited_for(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            broker = fake.broker()
            broker.next(ApiKey.METADATA, saying(MetadataResponse()), saying(MetadataResponse()))
            async with connected(fake) as cluster:
                assert sorted(cluster.metadata.brokers) == [1]

    run(test())


def test_name_and_version_of_the_client_are_sent(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake, connected(fake, client_id="me"):
            request: Any = fake.broker().seen[ApiKey.API_VERSIONS][0]
            assert (request.client_software_name, request.client_software_version) == (
                "headrace",
                __version__,
            )
            assert {header.client_id for header in fake.broker().headers} == {"me"}

    run(test())


@pytest.mark.parametrize("highest", [0, 2, 3])
def test_an_older_broker_is_asked_for_its_versions_in_its_own_way(run: Run, highest: int) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            fake.broker().versions[ApiKey.API_VERSIONS] = (0, highest)
            fake.broker().versions[ApiKey.METADATA] = (4, 8)
            async with connected(fake):
                pass
            versions = [
                (header.request_api_key, header.request_api_version) for header in fake.broker().headers
            ]
            assert (ApiKey.API_VERSIONS, highest) in versions
            assert (ApiKey.METADATA, 8) in versions

    run(test())


def test_what_both_sides_know_decides_the_version(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            fake.broker().versions[ApiKey.METADATA] = (0, 11)
            async with connected(fake) as cluster:
                request = MetadataRequest(topics=[])
                await cluster.send(1, request)
                assert fake.broker().headers[-1].request_api_version == 11
                await cluster.send(1, request, max_version=9)
                assert fake.broker().headers[-1].request_api_version == 9
                with pytest.raises(UnsupportedByBroker, match=r"versions 0 to 11.*12 to 13 are needed"):
                    await cluster.send(1, request, min_version=12)
                del fake.broker().versions[ApiKey.OFFSET_FETCH]
                fake.broker().hang_up()
                with pytest.raises((UnsupportedByBroker, ConnectionLost)):
                    await cluster.send(1, OffsetFetchRequest())
                with pytest.raises(UnsupportedByBroker, match="OffsetFetch: it does not know this API"):
                    await cluster.send(1, OffsetFetchRequest())

    run(test())


@pytest.mark.parametrize("action", [hang_up, half_a_reply, wrong_id, raw(b"\x00\x00\x00\x05abcde")])
def test_a_connection_that_is_lost_is_made_again(run: Run, action: Any) -> None:
    async def test() -> None:
        async with fake_cluster() as fake, connected(fake) as cluster:
            fake.broker().next(ApiKey.METADATA, action)
            with pytest.raises(ConnectionLost):
                await soon(cluster.send(1, MetadataRequest(topics=[])))
            assert (await soon(cluster.send(1, MetadataRequest(topics=[])))).cluster_id == fake.cluster_id

    run(test())


def test_a_reply_in_crumbs_is_put_together(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake, connected(fake) as cluster:
            fake.broker().next(ApiKey.METADATA, in_crumbs)
            assert (await soon(cluster.send(1, MetadataRequest(topics=[])))).cluster_id == fake.cluster_id

    run(test())


def test_a_request_time_out_is_told_and_the_next_request_works(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake, connected(fake) as cluster:
            fake.broker().next(ApiKey.METADATA, silence)
            with pytest.raises(RequestTimedOut, match="Metadata within 20 ms"):
                await soon(cluster.send(1, MetadataRequest(topics=[]), timeout_ms=20))
            assert (await soon(cluster.send(1, MetadataRequest(topics=[])))).cluster_id == fake.cluster_id

    run(test())


def test_a_broker_that_comes_back_is_found_again(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake, connected(fake) as cluster:
            await fake.broker().stop()
            with pytest.raises((ConnectionLost, Unreachable)):
                await soon(cluster.send(1, MetadataRequest(topics=[])))
            with pytest.raises(Unreachable, match=r"broker 1 at .* cannot be reached; .*refused"):
                await soon(cluster.send(1, MetadataRequest(topics=[])))
            await fake.broker().start()
            assert (await soon(cluster.send(1, MetadataRequest(topics=[])))).cluster_id == fake.cluster_id

    run(test())


def test_a_broker_that_accepts_and_says_nothing_is_tried_again(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            fake.broker().next(ApiKey.API_VERSIONS, silence, silence)
            timeouts = {
                "socket_connection_setup_timeout_ms": 20,
                "socket_connection_setup_timeout_max_ms": 200,
            }
            async with connected(fake, **timeouts) as cluster:
                assert cluster.cluster_id == fake.cluster_id

    run(test())


def test_waits_between_attempts_grow_up_to_a_bound_and_differ() -> None:
    entropy = SeededEntropy(1)
    waits = [backoff_ms(50, 1000, failures, entropy) for failures in range(8)]
    assert waits[0] == 0
    for failures, wait in enumerate(waits[1:]):
        middle = min(50 * 2**failures, 1000)
        assert 0.8 * middle <= wait <= min(1.2 * middle, 1000)
    assert len({backoff_ms(50, 1000, 3, entropy) for _ in range(20)}) > 10
    assert backoff_ms(0, 0, 5, entropy) == 0
    assert backoff_ms(50, 1000, 10_000, entropy) <= 1000


def test_one_connection_serves_all_requests_to_a_broker(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake, connected(fake) as cluster:
            before = fake.broker().connections
            requests = [cluster.send(1, MetadataRequest(topics=[])) for _ in range(50)]
            await soon(asyncio.gather(*requests))
            assert fake.broker().connections - before == 1

    run(test())


def test_lanes_have_connections_of_their_own(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake, connected(fake) as cluster:
            lane = cluster.new_lane("test")
            held = asyncio.Event()
            fake.broker().next(ApiKey.METADATA, when(held))
            waiting = asyncio.create_task(cluster.send(1, MetadataRequest(topics=[]), lane=lane))
            await fake.broker().asked(ApiKey.METADATA, 2)
            await soon(cluster.send(1, MetadataRequest(topics=[])))
            await cluster.close_lane(lane)
            with pytest.raises(ConnectionLost):
                await soon(waiting)

    run(test())


def test_cancelling_a_request_harms_nobody(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake, connected(fake) as cluster:
            await cluster.send(1, MetadataRequest(topics=[]))
            before = fake.broker().connections
            for _ in range(20):
                held = asyncio.Event()
                fake.broker().next(ApiKey.METADATA, when(held))
                count = len(fake.broker().seen[ApiKey.METADATA])
                waiting = asyncio.create_task(cluster.send(1, MetadataRequest(topics=[])))
                await fake.broker().asked(ApiKey.METADATA, count + 1)
                waiting.cancel()
                other = asyncio.create_task(cluster.send(1, MetadataRequest(topics=[])))
                held.set()
                assert (await soon(other)).cluster_id == fake.cluster_id
            assert fake.broker().connections == before

    run(test())


def test_cancelling_who_waits_for_a_connection_does_not_end_it_for_others(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake, connected(fake) as cluster:
            held = asyncio.Event()
            lane = cluster.new_lane("test")
            count = len(fake.broker().seen[ApiKey.API_VERSIONS])
            fake.broker().next(ApiKey.API_VERSIONS, when(held))
            first = asyncio.create_task(cluster.send(1, MetadataRequest(topics=[]), lane=lane))
            second = asyncio.create_task(cluster.send(1, MetadataRequest(topics=[]), lane=lane))
            await fake.broker().asked(ApiKey.API_VERSIONS, count + 1)
            first.cancel()
            held.set()
            assert (await soon(second)).cluster_id == fake.cluster_id

    run(test())


def test_an_idle_connection_is_closed_and_nobody_minds(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake, connected(fake, connections_max_idle_ms=20) as cluster:
            await cluster.send(1, MetadataRequest(topics=[]))
            await fake.broker().left_by(fake.broker().connections)
            assert (await soon(cluster.send(1, MetadataRequest(topics=[])))).cluster_id == fake.cluster_id

    run(test())


def test_a_connection_with_a_request_under_way_is_not_idle(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake, connected(fake, connections_max_idle_ms=10) as cluster:
            held = asyncio.Event()
            fake.broker().next(ApiKey.METADATA, when(held))
            asyncio.get_running_loop().call_later(0.1, held.set)
            assert (await soon(cluster.send(1, MetadataRequest(topics=[])))).cluster_id == fake.cluster_id

    run(test())


def test_throttling_is_obeyed(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake, connected(fake) as cluster:
            usual = fake._metadata(MetadataRequest(topics=[]))
            usual.throttle_time_ms = 60
            fake.broker().next(ApiKey.METADATA, saying(usual))
            await cluster.send(1, MetadataRequest(topics=[]))
            started = asyncio.get_running_loop().time()
            await soon(cluster.send(1, MetadataRequest(topics=[])))
            assert asyncio.get_running_loop().time() - started > 0.03

    run(test())


def test_closing_leaves_nothing_behind(run: Run) -> None:
    async def test() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            async with fake_cluster() as fake:
                cluster = Cluster(fake.config())
                await cluster.start()
                fake.broker().next(ApiKey.METADATA, silence)
                waiting = asyncio.create_task(cluster.send(1, MetadataRequest(topics=[])))
                await fake.broker().asked(ApiKey.METADATA, 2)
                await cluster.close()
                with pytest.raises(ConnectionLost):
                    await waiting
                with pytest.raises(ClientClosed):
                    await cluster.send(1, MetadataRequest(topics=[]))
                await cluster.close()
            gc.collect()

    run(test())


def test_closing_amid_a_first_connection_leaves_nothing_behind(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            cluster = Cluster(fake.config())
            fake.broker().next(ApiKey.API_VERSIONS, silence)
            starting = asyncio.create_task(cluster.start())
            await fake.broker().asked(ApiKey.API_VERSIONS)
            starting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await starting
            await cluster.close()

    run(test())


def test_who_waits_while_the_cluster_is_closed_is_told_so(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            cluster = Cluster(fake.config(topic_wait_ms=20_000))
            await cluster.start()
            fake.broker().next(ApiKey.METADATA, silence)
            refreshing = asyncio.create_task(cluster.refresh())
            await fake.broker().asked(ApiKey.METADATA, 2)
            lane = cluster.new_lane("test")
            count = len(fake.broker().seen[ApiKey.API_VERSIONS])
            fake.broker().next(ApiKey.API_VERSIONS, silence)
            connecting = asyncio.create_task(cluster.versions(1, lane))
            await fake.broker().asked(ApiKey.API_VERSIONS, count + 1)
            await cluster.close()
            for waiting in (refreshing, connecting):
                with pytest.raises(ClientClosed):
                    await soon(waiting)
            with pytest.raises(ClientClosed, match="started once"):
                await cluster.start()

    run(test())


def test_a_cluster_that_was_not_started_says_so(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            with pytest.raises(ClientClosed, match="was not started"):
                await Cluster(fake.config()).send(1, MetadataRequest())

    run(test())


# Controller and coordinators


def _creation(*codes: int) -> Any:
    replies = iter(codes)

    def answer(broker: FakeBroker, request: CreateTopicsRequest) -> CreateTopicsResponse:
        return CreateTopicsResponse(topics=[CreatableTopicResult(name="t", error_code=next(replies))])

    return answer


def test_a_controller_that_is_none_any_more_is_looked_up_again(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster(2) as fake, connected(fake) as cluster:
            fake.answers[ApiKey.CREATE_TOPICS] = _creation(
                ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_CONTROLLER, 0
            )
            reply = await soon(cluster.send_controller(CreateTopicsRequest()))
            assert reply.topics[0].error_code == 0
            assert len(fake.broker(1).seen[ApiKey.CREATE_TOPICS]) == 3

    run(test())


def test_in_the_end_the_controllers_refusal_is_returned(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake, connected(fake, default_api_timeout_ms=30) as cluster:
            fake.answers[ApiKey.CREATE_TOPICS] = _creation(*[ErrorCode.NOT_CONTROLLER] * 1000)
            reply = await soon(cluster.send_controller(CreateTopicsRequest()))
            assert reply.topics[0].error_code == ErrorCode.NOT_CONTROLLER

    run(test())


def _coordinated_by(fake: FakeCluster, nodes: list[int], codes: list[int]) -> None:
    """Coordinators to be found one after the other, and what they answer one after the other."""
    found, answers = iter(nodes), iter(codes)

    def find(broker: FakeBroker, request: Any) -> FindCoordinatorResponse:
        node_id = next(found)
        if request.coordinator_keys:
            return FindCoordinatorResponse(
                coordinators=[Coordinator(key=request.coordinator_keys[0], node_id=node_id, host="h", port=1)]
            )
        return FindCoordinatorResponse(node_id=node_id, host="h", port=1)

    def fetch(broker: FakeBroker, request: Any) -> OffsetFetchResponse:
        return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="g", error_code=next(answers))])

    fake.answers[ApiKey.FIND_COORDINATOR] = find
    fake.answers[ApiKey.OFFSET_FETCH] = fetch


GROUP = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])


@pytest.mark.parametrize("find_version", [6, 3])
def test_a_coordinator_that_moves_or_loads_is_followed(run: Run, find_version: int) -> None:
    async def test() -> None:
        async with fake_cluster(2) as fake:
            for broker in fake.brokers.values():
                broker.versions[ApiKey.FIND_COORDINATOR] = (0, find_version)
            async with connected(fake) as cluster:
                moved = [
                    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                    ErrorCode.NOT_COORDINATOR,
                    ErrorCode.COORDINATOR_NOT_AVAILABLE,
                ]
                _coordinated_by(fake, [1, 2, 1, 1], [*moved, 0, 0])
                reply = await soon(cluster.send_coordinator("g", GROUP))
                assert reply.groups[0].error_code == 0
                assert len(fake.broker(1).seen[ApiKey.OFFSET_FETCH]) == 3
                assert len(fake.broker(2).seen[ApiKey.OFFSET_FETCH]) == 1
                await soon(cluster.send_coordinator("g", GROUP))
                finds = [len(broker.seen[ApiKey.FIND_COORDINATOR]) for broker in fake.brokers.values()]
                assert sum(finds) == 3

    run(test())


def test_who_may_not_ask_for_a_coordinator_is_told(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake, connected(fake) as cluster:
            refusal = Coordinator(
                key="g", error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED, error_message="no"
            )
            fake.answers[ApiKey.FIND_COORDINATOR] = lambda *_: FindCoordinatorResponse(coordinators=[refusal])
            with pytest.raises(
                BrokerRefused, match="coordinator of group 'g': GROUP_AUTHORIZATION_FAILED: no"
            ):
                await soon(cluster.send_coordinator("g", GROUP))

    run(test())
