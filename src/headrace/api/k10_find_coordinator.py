"""FindCoordinator: which broker has the state of groups, transactions or share partitions.

The topic that the state is kept in is created when it is first asked about; nobody waits for that."""

from typing import Final

from headrace.api.context import RequestContext
from headrace.api.error_texts import default_text
from headrace.api.services import Api, Services
from headrace.coordinator.placement import partition_for
from headrace.errors import ErrorCode, KafkaError
from headrace.metadata.auto_creation import GROUP_TOPIC, SHARE_TOPIC, TRANSACTION_TOPIC
from headrace.metadata.ids import decode_id, encode_id
from headrace.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from headrace.replication.cluster_view import NodeAddress

_SEVERAL_KEYS_SINCE: Final = 4
_SHARE_SINCE: Final = 6
_GROUP, _TRANSACTION, _SHARE = range(3)
_TOPICS: Final = {_GROUP: GROUP_TOPIC, _TRANSACTION: TRANSACTION_TOPIC, _SHARE: SHARE_TOPIC}
_NOBODY: Final = NodeAddress(-1, "", -1)


def handle(
    services: Services, context: RequestContext, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    """Every key by itself."""
    kind, version = request.key_type, context.version
    if kind not in _TOPICS:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if version >= _SEVERAL_KEYS_SINCE:
        return FindCoordinatorResponse(
            coordinators=[_found(services, context, kind, key) for key in request.coordinator_keys]
        )
    try:
        node = _locate(services, context, kind, request.key)
    except KafkaError as error:
        return _old_failure(error.code)
    return FindCoordinatorResponse(
        error_message=ErrorCode.NONE.name, node_id=node.node_id, host=node.host, port=node.port
    )


def _found(services: Services, context: RequestContext, kind: int, key: str) -> Coordinator:
    code, node = ErrorCode.NONE, _NOBODY
    try:
        node = _locate(services, context, kind, key)
    except KafkaError as error:
        code = error.code
    return Coordinator(key=key, node_id=node.node_id, host=node.host, port=node.port, error_code=code)


def _locate(services: Services, context: RequestContext, kind: int, key: str) -> NodeAddress:
    """The broker that leads the partition of a key."""
    if kind == _SHARE and context.version < _SHARE_SINCE:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    name = _TOPICS[kind]
    hashed = _share_key(key) if kind == _SHARE else key
    topic = services.image.topics.get(name)
    if topic is None:
        _create(services, name)
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    index = partition_for(hashed, len(topic.partitions))
    state = topic.partitions.get(index)
    node = None
    if state is not None and not _is_awaited(services, name, index, state.leader):
        node = services.replicas.cluster.address_of(state.leader, context.listener)
    if node is None:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return node


def _is_awaited(services: Services, name: str, index: int, leader: int) -> bool:
    """Whether this node leads a partition that it has not got round to yet: better to ask again than to be
    sent to somebody who says that it is not the coordinator."""
    if leader != services.config.node_id:
        return False
    partition = services.replicas.get(name, index)
    return partition is None or not partition.is_leader


def _create(services: Services, name: str) -> None:
    auto_topics = services.auto_topics
    if name not in auto_topics.in_flight:
        auto_topics.begin([name], services.controller.auto_create_topics([name]))


def _share_key(key: str) -> str:
    """The key of a share partition, spelt as brokers do: its group, the id of its topic, its number."""
    group, _, number = key.rpartition(":")
    group, _, topic = group.rpartition(":")
    try:
        if not group.strip():
            raise ValueError("no group")
        return f"{group}:{encode_id(decode_id(topic))}:{int(number)}"
    except ValueError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST) from error


def _old_failure(code: ErrorCode) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        error_code=code, error_message=default_text(code), node_id=-1, host="", port=-1
    )


def error_response(
    request: FindCoordinatorRequest, version: int, error: KafkaError
) -> FindCoordinatorResponse:
    """The same error for every key."""
    if version < _SEVERAL_KEYS_SINCE:
        return _old_failure(error.code)
    text = default_text(error.code)
    return FindCoordinatorResponse(
        coordinators=[
            Coordinator(key=key, node_id=-1, host="", port=-1, error_code=error.code, error_message=text)
            for key in request.coordinator_keys
        ]
    )


API = Api(
    key=10,
    name="FindCoordinator",
    versions=(0, 6),
    request=FindCoordinatorRequest,
    response=FindCoordinatorResponse,
    handle=handle,
    error_response=error_response,
)
