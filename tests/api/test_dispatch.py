"""Frames in, replies out: what is answered, what is refused, and what closes a connection."""

import asyncio
import logging
import struct
from collections.abc import Awaitable
from typing import Any

import pytest

from headrace.api.request_stats import register_requests
from headrace.api.services import Api, ErrorResponse, Handler
from headrace.errors import ErrorCode, KafkaError
from headrace.metrics.exposition import render
from headrace.metrics.registry import Registry
from headrace.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from headrace.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from headrace.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from headrace.protocol.messages.describe_quorum import DescribeQuorumRequest
from headrace.protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from tests.support_admin import Client


def refusal(request: object, version: int, error: KafkaError) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=error.code, error_message=error.message or None)


def cluster_api(handle: Handler, error_response: ErrorResponse | None = refusal) -> Api:
    return Api(
        60, "DescribeCluster", (0, 2), DescribeClusterRequest, DescribeClusterResponse, handle, error_response
    )


def client_of(handle: Handler, error_response: ErrorResponse | None = refusal) -> Client:
    return Client(None, [cluster_api(handle, error_response)])


def named(name: str) -> Handler:
    return lambda services, context, request: DescribeClusterResponse(cluster_id=name)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_request_is_answered_with_its_correlation_id(version: int) -> None:
    client = client_of(named("c"))
    client.send(DescribeClusterRequest(), version, correlation_id=77)
    correlation_id, reply = client.reply(DescribeClusterResponse, version)
    assert (correlation_id, reply.cluster_id) == (77, "c")


def test_a_handler_is_told_about_the_request() -> None:
    contexts = []

    def handle(services: object, context: Any, request: DescribeClusterRequest) -> DescribeClusterResponse:
        contexts.append((context, request.include_fenced_brokers))
        return DescribeClusterResponse()

    client = client_of(handle)
    client.send(DescribeClusterRequest(include_fenced_brokers=True), 2, client_id="né")
    ((context, asked),) = contexts
    assert asked
    assert (context.api_key, context.version, context.client_id) == (60, 2, "né")
    assert (context.listener, context.peer) == ("PLAINTEXT", "/192.0.2.7")
    assert context.connection is client.connection
    assert client.connection.client_id == "né"


def test_a_client_may_have_no_id() -> None:
    client = client_of(named("c"))
    client.send(DescribeClusterRequest(), 1, client_id=None)
    assert client.reply(DescribeClusterResponse, 1)[1].cluster_id == "c"
    assert client.connection.client_id is None


def test_tagged_fields_in_a_header_are_passed_over() -> None:
    client = client_of(named("c"))
    header = struct.pack(">hhih", 60, 0, 5, 1) + b"x" + b"\x01\x07\x02ab"
    client.send_frame(header + b"\x00\x00")
    assert client.reply(DescribeClusterResponse, 0)[0] == 5


def test_bytes_behind_a_request_do_not_matter() -> None:
    client = client_of(named("c"))
    client.send(DescribeClusterRequest(), 0, trailing=b"more")
    assert client.reply(DescribeClusterResponse, 0)[1].cluster_id == "c"


def test_an_unknown_version_of_api_versions_is_answered_in_version_0() -> None:
    client = client_of(named("c"))
    for version in (5, 99, 32767, -1):
        client.send_frame(struct.pack(">hhih", 18, version, 9, 0) + b"\x00")
        correlation_id, reply = client.reply(ApiVersionsResponse, 0)
        assert correlation_id == 9
        assert reply.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert [(key.api_key, key.min_version, key.max_version) for key in reply.api_keys] == [(18, 0, 4)]
    assert client.connection.close_reason is None


@pytest.mark.parametrize(
    ("key", "version", "reason"),
    [
        (60, 3, "DescribeCluster (API key 60) version 3 is not supported"),
        (60, -1, "DescribeCluster (API key 60) version -1 is not supported"),
        (1, 11, "Fetch (API key 1) version 11 is not supported"),
        (999, 0, "API key 999 (version 0) is unknown"),
        (-1, 0, "API key -1 (version 0) is unknown"),
    ],
)
def test_what_is_not_supported_closes_the_connection(key: int, version: int, reason: str) -> None:
    client = client_of(named("c"))
    client.send_frame(struct.pack(">hhih", key, version, 1, 0) + b"\x00\x00\x00")
    assert client.connection.close_reason == reason
    assert client.connection.slots == []


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\x00",
        struct.pack(">hhi", 60, 0, 1),
        struct.pack(">hhih", 60, 0, 1, 0),
        struct.pack(">hhih", 60, 0, 1, 300) + b"abc",
        struct.pack(">hhih", 60, 0, 1, 0) + b"\x00",
        struct.pack(">hhih", 60, 0, 1, 0) + b"\xff\xff\xff\xff\xff\xff",
        struct.pack(">hhih", 60, 0, 1, 0) + b"\x00\x00\x05",
    ],
)
def test_a_malformed_frame_closes_the_connection(frame: bytes) -> None:
    client = client_of(named("c"))
    client.send_frame(frame)
    assert client.connection.close_reason is not None
    assert client.connection.slots == []


def test_a_refusal_is_answered_in_the_form_of_the_api() -> None:
    def handle(*_: object) -> DescribeClusterResponse:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "not today")

    client = client_of(handle)
    client.send(DescribeClusterRequest(), 1)
    reply = client.reply(DescribeClusterResponse, 1)[1]
    assert (reply.error_code, reply.error_message) == (ErrorCode.POLICY_VIOLATION, "not today")
    assert client.dispatch.stats["DescribeCluster"].errors == {ErrorCode.POLICY_VIOLATION: 1}


def test_a_bug_is_an_unknown_server_error_and_one_log_line(caplog: pytest.LogCaptureFixture) -> None:
    def handle(*_: object) -> DescribeClusterResponse:
        raise ZeroDivisionError("oops")

    client = client_of(handle)
    client.send(DescribeClusterRequest(), 1)
    reply = client.reply(DescribeClusterResponse, 1)[1]
    assert (reply.error_code, reply.error_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert record.getMessage() == "DescribeCluster v1 of 192.0.2.7:4711 on PLAINTEXT failed: oops"
    assert record.exc_info is not None


def test_a_failure_without_a_form_to_tell_it_closes_the_connection() -> None:
    def handle(*_: object) -> DescribeClusterResponse:
        raise KafkaError(ErrorCode.POLICY_VIOLATION)

    client = client_of(handle, error_response=None)
    client.send(DescribeClusterRequest(), 1)
    assert client.connection.close_reason == "DescribeCluster failed: POLICY_VIOLATION"
    assert client.dispatch.stats["DescribeCluster"].errors == {ErrorCode.POLICY_VIOLATION: 1}


def test_a_reply_that_cannot_be_written_is_an_unknown_server_error(caplog: pytest.LogCaptureFixture) -> None:
    client = client_of(lambda *_: DescribeClusterResponse(controller_id=1 << 40))
    client.send(DescribeClusterRequest(), 1)
    assert client.reply(DescribeClusterResponse, 1)[1].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert any(record.levelno == logging.ERROR for record in caplog.records)


def test_no_reply_leaves_the_slot_empty() -> None:
    client = client_of(lambda *_: None)
    client.send(DescribeClusterRequest(), 1)
    (slot,) = client.connection.slots
    assert slot.is_discarded
    assert client.dispatch.stats["DescribeCluster"].count == 1


def test_a_reply_may_come_later_and_does_not_hold_up_others() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        later: asyncio.Future[DescribeClusterResponse] = loop.create_future()
        replies: list[Any] = [later, DescribeClusterResponse(cluster_id="second")]
        client = client_of(lambda *_: replies.pop(0))
        client.send(DescribeClusterRequest(), 1, correlation_id=1)
        client.send(DescribeClusterRequest(), 1, correlation_id=2)
        first, second = client.connection.slots
        assert (first.is_answered, second.is_answered) == (False, True)
        later.set_result(DescribeClusterResponse(cluster_id="first"))
        await asyncio.wait_for(_until(lambda: first.is_answered), 5)
        assert client.reply(DescribeClusterResponse, 1, index=0)[1].cluster_id == "first"

    asyncio.run(scenario())


def test_a_coroutine_is_run_and_its_refusal_told() -> None:
    async def handle_later() -> DescribeClusterResponse:
        await asyncio.wait([asyncio.ensure_future(_until(lambda: True))])
        raise KafkaError(ErrorCode.NOT_CONTROLLER, "gone")

    def handle(*_: object) -> Awaitable[DescribeClusterResponse]:
        return handle_later()

    async def scenario() -> None:
        client = client_of(handle)
        client.send(DescribeClusterRequest(), 1)
        await asyncio.wait_for(_until(lambda: client.connection.slots[0].is_answered), 5)
        assert client.reply(DescribeClusterResponse, 1)[1].error_code == ErrorCode.NOT_CONTROLLER

    asyncio.run(scenario())


def test_waiting_ends_when_the_client_is_gone() -> None:
    async def scenario() -> None:
        later: asyncio.Future[DescribeClusterResponse] = asyncio.get_running_loop().create_future()
        client = client_of(lambda *_: later)
        client.send(DescribeClusterRequest(), 1)
        client.connection.close("gone")
        await asyncio.wait_for(_until(later.cancelled), 5)

    asyncio.run(scenario())


def test_requests_are_counted_by_api() -> None:
    client = client_of(named("c"))
    for _ in range(3):
        client.send(DescribeClusterRequest(), 1)
    stats = client.dispatch.stats["DescribeCluster"]
    assert (stats.count, sum(stats.time_ms.counts), stats.errors) == (3, 3, {})
    assert stats.request_bytes > 0
    assert stats.time_ms.total > 0


def test_prometheus_can_read_what_is_counted() -> None:
    def handle(*_: object) -> DescribeClusterResponse:
        raise KafkaError(ErrorCode.POLICY_VIOLATION)

    client = client_of(handle)
    client.send(DescribeClusterRequest(), 1)
    registry = Registry()
    register_requests(registry, {"broker": client.dispatch.stats})
    page = "".join(render(registry))
    labels = 'request="DescribeCluster",role="broker"'
    assert f"kafka_network_requestmetrics_requests_total{{{labels}}} 1\n" in page
    errors = f'kafka_network_requestmetrics_errors_total{{{labels},error="POLICY_VIOLATION"}} 1\n'
    assert errors in page
    assert f"kafka_network_requestmetrics_totaltimems_count{{{labels}}} 1\n" in page


def test_errors_of_items_are_counted_by_code() -> None:
    results = [DeletableTopicResult(name="a"), DeletableTopicResult(name="b", error_code=3)] * 2
    api = Api(
        20,
        "DeleteTopics",
        (1, 6),
        DeleteTopicsRequest,
        DeleteTopicsResponse,
        lambda *_: DeleteTopicsResponse(responses=results),
    )
    client = Client(None, [api])
    client.send(DeleteTopicsRequest(topics=[DeleteTopicState(name="a")]), 6)
    assert client.dispatch.stats["DeleteTopics"].errors == {3: 2}


def test_the_software_of_a_client_is_noted() -> None:
    api = Api(
        18, "ApiVersions", (0, 4), ApiVersionsRequest, ApiVersionsResponse, lambda *_: ApiVersionsResponse()
    )
    client = Client(None, [api])
    client.send(ApiVersionsRequest(client_software_name="kcat", client_software_version="1.7"), 3)
    assert (client.connection.software_name, client.connection.software_version) == ("kcat", "1.7")
    client.send(ApiVersionsRequest(), 0)
    assert client.connection.software_name == "unknown"


def test_apis_beside_each_other_are_told_apart() -> None:
    other = Api(
        74,
        "ListConfigResources",
        (0, 1),
        ListConfigResourcesRequest,
        ListConfigResourcesResponse,
        lambda *_: ListConfigResourcesResponse(error_code=42),
    )
    client = Client(None, [cluster_api(named("c")), other])
    client.send(ListConfigResourcesRequest(), 1)
    assert client.reply(ListConfigResourcesResponse, 1)[1].error_code == 42
    client.send(DescribeQuorumRequest(), 0)
    assert client.connection.close_reason == "DescribeQuorum (API key 55) version 0 is not supported"


async def _until(condition: Any) -> None:
    while not condition():
        done = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(done.set_result, None)
        await done
