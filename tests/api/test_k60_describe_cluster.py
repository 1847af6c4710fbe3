"""DescribeCluster: the nodes of the kind that was asked."""

from typing import Any

import pytest

from headrace.api.k60_describe_cluster import API
from headrace.errors import ErrorCode
from headrace.metadata.image import MetadataImage
from headrace.protocol.disk_records.cluster_metadata import (
    ControllerEndpoint,
    FeatureLevelRecord,
    RegisterControllerRecord,
)
from headrace.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from tests.support_admin import CLUSTER_ID, ask, broker_record, image_of, services_of, spoken_versions

BROKER, CONTROLLER = 1, 2


def image(metadata_version: int = 30) -> MetadataImage:
    endpoint = ControllerEndpoint(name="CONTROLLER", host="host-1", port=9093, security_protocol=0)
    return image_of(
        FeatureLevelRecord(name="metadata.version", feature_level=metadata_version),
        broker_record(1, rack="r"),
        broker_record(2, fenced=True),
        RegisterControllerRecord(controller_id=1, end_points=[endpoint]),
    )


def describe(version: int, metadata_version: int = 30, **fields: Any) -> DescribeClusterResponse:
    listener = fields.pop("listener", "PLAINTEXT")
    services, _ = services_of(image(metadata_version))
    request = DescribeClusterRequest(**fields)
    return ask(services, API, request, DescribeClusterResponse, version, listener)


@pytest.mark.parametrize("version", spoken_versions(API))
def test_brokers_that_are_alive_are_told(version: int) -> None:
    reply = describe(version)
    assert (reply.error_code, reply.error_message, reply.cluster_id) == (0, None, CLUSTER_ID)
    (broker,) = reply.brokers
    assert (broker.broker_id, broker.host, broker.port, broker.rack) == (1, "host-1", 9001, "r")
    assert (reply.controller_id, reply.endpoint_type) == (1, BROKER)
    assert reply.cluster_authorized_operations == -(1 << 31)


def test_fenced_brokers_are_told_if_asked_for() -> None:
    reply = describe(2, include_fenced_brokers=True)
    assert [(each.broker_id, each.is_fenced) for each in reply.brokers] == [(1, False), (2, True)]


def test_authorized_operations_are_told_if_asked_for() -> None:
    assert describe(1, include_cluster_authorized_operations=True).cluster_authorized_operations == 8096


def test_a_broker_does_not_tell_of_controllers() -> None:
    reply = describe(1, endpoint_type=CONTROLLER)
    assert reply.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
    assert reply.error_message == (
        "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
    )
    assert (reply.brokers, reply.cluster_id, reply.controller_id) == ([], "", -1)


def test_an_unknown_kind_is_refused() -> None:
    reply = describe(1, endpoint_type=7)
    assert (reply.error_code, reply.error_message) == (
        ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
        "Unsupported endpoint type 7",
    )


def test_a_controller_tells_of_controllers() -> None:
    reply = describe(1, listener="CONTROLLER", endpoint_type=CONTROLLER)
    assert [(each.broker_id, each.host, each.port) for each in reply.brokers] == [(1, "host-1", 9093)]
    assert (reply.controller_id, reply.endpoint_type) == (1, CONTROLLER)


@pytest.mark.parametrize(
    ("version", "code"), [(0, ErrorCode.INVALID_REQUEST), (1, ErrorCode.MISMATCHED_ENDPOINT_TYPE)]
)
def test_a_controller_does_not_tell_of_brokers(version: int, code: ErrorCode) -> None:
    assert describe(version, listener="CONTROLLER").error_code == code


def test_controllers_are_not_registered_in_old_metadata() -> None:
    reply = describe(1, metadata_version=14, listener="CONTROLLER", endpoint_type=CONTROLLER)
    assert reply.error_code == ErrorCode.UNSUPPORTED_VERSION
