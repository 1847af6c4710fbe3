"""Metadata: where brokers, topics and partitions are, for clients that came in on one listener.

Topics are asked for by name, by id (from version 12 on), all at once, or not at all. One that does not exist
is created where the request and `auto.create.topics.enable` both allow it; nobody waits for that, and the
reply says that the topic is unknown until it is there. What is wrong with one topic concerns that one only.
"""

from collections.abc import Collection
from typing import Final
from uuid import UUID

from headrace.api.authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS
from headrace.api.brokers import OnlineReplicas, brokers_on, contact_broker, has_listener, reachable
from headrace.api.context import RequestContext
from headrace.api.missing_topics import is_topic_name, missing_topic_error
from headrace.api.services import Api, Services
from headrace.errors import ErrorCode, KafkaError
from headrace.metadata.image import MetadataImage
from headrace.metadata.partitions import PartitionState, TopicState
from headrace.metadata.topic_names import INTERNAL_TOPICS
from headrace.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.types import ZERO_UUID

_BY_ID_SINCE: Final = 12
_NO_LEADER: Final = -1


def handle(services: Services, context: RequestContext, request: MetadataRequest) -> MetadataResponse:
    image = services.image
    topics = _topics(services, context, request)
    asks_for_cluster = 8 <= context.version <= 10 and request.include_cluster_authorized_operations
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=each.id, host=each.host, port=each.port, rack=each.rack)
            for each in brokers_on(image, context.listener)
            if not each.is_fenced
        ],
        cluster_id=services.cluster_id,
        controller_id=contact_broker(image, services.config.node_id),
        topics=topics,
        cluster_authorized_operations=CLUSTER_OPERATIONS if asks_for_cluster else NOT_ASKED,
    )


def _topics(
    services: Services, context: RequestContext, request: MetadataRequest
) -> list[MetadataResponseTopic]:
    view = _View(services.image, context)
    if request.topics is None or (not request.topics and context.version == 0):
        found = [view.topic(topic) for topic in services.image.topics.values()]
        return _with_operations(found, request)
    _check_form(request, context.version)
    ids = dict.fromkeys(topic.topic_id for topic in request.topics if topic.topic_id != ZERO_UUID)
    if ids:
        known = [services.image.topics_by_id[each] for each in ids if each in services.image.topics_by_id]
        unknown = [_unknown_id(each) for each in ids if each not in services.image.topics_by_id]
        return unknown + _with_operations([view.topic(topic) for topic in known], request)
    names = dict.fromkeys(topic.name or "" for topic in request.topics)
    topics = services.image.topics
    found = [view.topic(topics[name]) for name in names if name in topics]
    missing = [name for name in names if name not in topics]
    if missing:
        may_create = request.allow_auto_topic_creation and services.config.flag("auto.create.topics.enable")
        found += _created(services, missing) if may_create else [_missing(name) for name in missing]
    return _with_operations(found, request)


def _check_form(request: MetadataRequest, version: int) -> None:
    names_no_id = all(each.topic_id == ZERO_UUID for each in request.topics or ())
    for topic in request.topics or ():
        if version < _BY_ID_SINCE and topic.name is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Topic name can not be null for version {version}")
        if version < _BY_ID_SINCE and topic.topic_id != ZERO_UUID:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"Topic IDs are not supported in requests for version {version}"
            )
        if topic.name is None and names_no_id:
            # Kafka stumbles over a topic that is named in no way, and answers so.
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)


def _with_operations(
    topics: list[MetadataResponseTopic], request: MetadataRequest
) -> list[MetadataResponseTopic]:
    if request.include_topic_authorized_operations:
        for topic in topics:
            topic.topic_authorized_operations = TOPIC_OPERATIONS
    return topics


class _View:
    """The image as the clients of one listener see it in one version.

    Partitions by the thousand share a few combinations of brokers, so what follows from one is kept."""

    __slots__ = (
        "_image",
        "_leaves_out_unreachable",
        "_listener",
        "_listener_error",
        "_online",
        "_told_leaders",
        "_told_replicas",
    )

    def __init__(self, image: MetadataImage, context: RequestContext) -> None:
        self._image = image
        self._listener = context.listener
        # The first version knew no brokers but those in its list.
        self._leaves_out_unreachable = context.version == 0
        self._listener_error = (
            ErrorCode.LISTENER_NOT_FOUND if context.version >= 6 else ErrorCode.LEADER_NOT_AVAILABLE
        )
        self._online = OnlineReplicas(image, context.listener)
        self._told_leaders: dict[int, tuple[int, ErrorCode]] = {}
        self._told_replicas: dict[tuple[int, ...], list[int]] = {}

    def topic(self, topic: TopicState) -> MetadataResponseTopic:
        return MetadataResponseTopic(
            name=topic.name,
            topic_id=topic.id,
            is_internal=topic.name in INTERNAL_TOPICS,
            partitions=[
                self._partition(index, partition) for index, partition in sorted(topic.partitions.items())
            ],
        )

    def _partition(self, index: int, partition: PartitionState) -> MetadataResponsePartition:
        replicas = self._told_replicas.get(partition.replicas) or self._replicas(partition.replicas)
        isr = self._told_replicas.get(partition.isr) or self._replicas(partition.isr)
        leader, error = self._told_leaders.get(partition.leader) or self._leader(partition.leader)
        if not error and (len(replicas) < len(partition.replicas) or len(isr) < len(partition.isr)):
            error = ErrorCode.REPLICA_NOT_AVAILABLE
        return MetadataResponsePartition(
            error_code=error,
            partition_index=index,
            leader_id=leader,
            leader_epoch=partition.leader_epoch,
            replica_nodes=replicas,
            isr_nodes=isr,
            offline_replicas=self._online.offline(partition),
        )

    def _replicas(self, brokers: tuple[int, ...]) -> list[int]:
        told = list(brokers)
        if self._leaves_out_unreachable:
            told = reachable(self._image, brokers, self._listener)
        self._told_replicas[brokers] = told
        return told

    def _leader(self, leader: int) -> tuple[int, ErrorCode]:
        told = (leader, ErrorCode.NONE)
        if not has_listener(self._image, leader, self._listener):
            is_known = leader in self._image.brokers
            told = (_NO_LEADER, self._listener_error if is_known else ErrorCode.LEADER_NOT_AVAILABLE)
        self._told_leaders[leader] = told
        return told


def _unknown_id(topic_id: UUID) -> MetadataResponseTopic:
    return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)


def _missing(name: str) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=missing_topic_error(name), name=name, is_internal=name in INTERNAL_TOPICS
    )


def _created(services: Services, names: Collection[str]) -> list[MetadataResponseTopic]:
    """Have topics created, unless they are being created already. Clients ask again until they are there."""
    auto_topics = services.auto_topics
    wanted = [name for name in names if is_topic_name(name) and name not in auto_topics.in_flight]
    if wanted:
        auto_topics.begin(wanted, services.controller.auto_create_topics(wanted))
    return [_missing(name) for name in names]


def error_response(request: MetadataRequest, version: int, error: KafkaError) -> MetadataResponse:
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(name=topic.name or "", topic_id=topic.topic_id, error_code=error.code)
            for topic in request.topics or ()
        ],
        error_code=error.code,
    )


API: Final = Api(
    key=3,
    name="Metadata",
    versions=(0, 13),
    request=MetadataRequest,
    response=MetadataResponse,
    handle=handle,
    error_response=error_response,
)
