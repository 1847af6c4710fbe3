"""DescribeCluster: the nodes of the kind that the asked listener belongs to, and whom to send changes to."""

from enum import IntEnum
from typing import Final

from headrace.api.authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED
from headrace.api.brokers import brokers_on, contact_broker
from headrace.api.context import RequestContext
from headrace.api.services import Api, Services
from headrace.errors import ErrorCode, KafkaError
from headrace.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)


class EndpointType(IntEnum):
    """Kinds of listeners by their code on the wire."""

    BROKER = 1
    CONTROLLER = 2


def handle(
    services: Services, context: RequestContext, request: DescribeClusterRequest
) -> DescribeClusterResponse:
    is_controller = context.listener in services.config.controller_listener_names
    kind = EndpointType.CONTROLLER if is_controller else EndpointType.BROKER
    if is_controller and not services.image.metadata_version.has_controller_registration:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "Direct-to-controller communication is not supported with the current MetadataVersion.",
        )
    _check_endpoint_type(request.endpoint_type, kind, context.version)
    if is_controller:
        nodes = _controllers(services, context.listener)
        asked = services.config.node_id
    else:
        nodes = _brokers(services, context.listener, with_fenced=request.include_fenced_brokers)
        asked = contact_broker(services.image, services.config.node_id)
    return DescribeClusterResponse(
        cluster_id=services.cluster_id,
        controller_id=asked if any(node.broker_id == asked for node in nodes) else -1,
        brokers=nodes,
        endpoint_type=kind,
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def _check_endpoint_type(asked: int, kind: EndpointType, version: int) -> None:
    if asked not in EndpointType.__members__.values():
        code, message = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {asked}"
    elif asked != kind:
        code = ErrorCode.MISMATCHED_ENDPOINT_TYPE
        message = (
            f"The request was sent to an endpoint of type {kind.name}, "
            f"but we wanted an endpoint of type {EndpointType(asked).name}"
        )
    else:
        return
    raise KafkaError(ErrorCode.INVALID_REQUEST if version == 0 else code, message)


def _brokers(services: Services, listener: str, *, with_fenced: bool) -> list[DescribeClusterBroker]:
    return [
        DescribeClusterBroker(
            broker_id=each.id, host=each.host, port=each.port, rack=each.rack, is_fenced=each.is_fenced
        )
        for each in brokers_on(services.image, listener)
        if with_fenced or not each.is_fenced
    ]


def _controllers(services: Services, listener: str) -> list[DescribeClusterBroker]:
    return [
        DescribeClusterBroker(broker_id=controller.id, host=endpoint.host, port=endpoint.port)
        for controller in services.image.controllers.values()
        if (endpoint := controller.endpoints.get(listener)) is not None
    ]


def error_response(
    request: DescribeClusterRequest, version: int, error: KafkaError
) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=error.code, error_message=error.message or None)


API: Final = Api(
    key=60,
    name="DescribeCluster",
    versions=(0, 2),
    request=DescribeClusterRequest,
    response=DescribeClusterResponse,
    handle=handle,
    error_response=error_response,
)
