"""Deleting topics and adding partitions; each topic of a request by itself."""

from typing import Final
from uuid import UUID

from headrace.errors import ErrorCode, KafkaError
from headrace.metadata.control_view import ControlView
from headrace.metadata.decision import (
    FINE,
    RECORDS_PER_REQUEST_MAX,
    Decision,
    ItemError,
    at_once,
    check_record_count,
    item_error,
)
from headrace.metadata.snapshot import VersionedRecord
from headrace.metadata.topic_names import named_twice
from headrace.metadata.topics import manual_partition, placing
from headrace.protocol.disk_records.cluster_metadata import RemoveTopicRecord
from headrace.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from headrace.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from headrace.types import ZERO_UUID

UNKNOWN_TOPIC: Final = ItemError(
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
)
UNKNOWN_TOPIC_ID: Final = ItemError(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")


def delete_topics(
    view: ControlView, request: DeleteTopicsRequest, api_version: int = 6
) -> Decision[DeleteTopicsResponse]:
    """Decide on every topic of a request, named or by id. Who asks must be allowed to."""
    if not view.config.flag("delete.topic.enable"):
        if api_version < 3:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "This version does not support topic deletion.")
        raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED)
    answers = _Answers(view)
    for name in request.topic_names:
        answers.ask_name(name)
    for topic in request.topics:
        answers.ask(topic.name, topic.topic_id)
    answers.resolve()
    records: list[VersionedRecord] = [(RemoveTopicRecord(topic_id=each), 0) for each in answers.to_delete]
    check_record_count(records)
    for topic_id, found in answers.to_delete.items():
        answers.add(found, topic_id, FINE)
    return Decision(DeleteTopicsResponse(responses=answers.results), records)


class _Answers:
    """Sorts out what a request asks to delete: names and ids, each at most once."""

    def __init__(self, view: ControlView) -> None:
        self._image = view.image
        self._names: dict[str, int] = {}
        self._ids: dict[UUID, int] = {}
        self.to_delete: dict[UUID, str] = {}
        self.results: list[DeletableTopicResult] = []

    def add(self, name: str | None, topic_id: UUID, error: ItemError) -> None:
        self.results.append(
            DeletableTopicResult(
                name=name, topic_id=topic_id, error_code=error.code, error_message=error.message
            )
        )

    def _refuse(self, name: str | None, topic_id: UUID, message: str) -> None:
        self.add(name, topic_id, ItemError(ErrorCode.INVALID_REQUEST, message))

    def ask_name(self, name: str) -> None:
        self._names[name] = self._names.get(name, 0) + 1

    def ask(self, name: str | None, topic_id: UUID) -> None:
        if name is None and topic_id == ZERO_UUID:
            self._refuse(None, ZERO_UUID, "Neither topic name nor id were specified.")
        elif name is None:
            self._ids[topic_id] = self._ids.get(topic_id, 0) + 1
        elif topic_id == ZERO_UUID:
            self.ask_name(name)
        else:
            self._refuse(name, topic_id, "You may not specify both topic name and topic id.")

    def resolve(self) -> None:
        """Find the topics, and answer for those that cannot be deleted."""
        for name, times in self._names.items():
            if times > 1:
                self._refuse(name, ZERO_UUID, "Duplicate topic name.")
        for topic_id, times in self._ids.items():
            if times > 1:
                self._refuse(None, topic_id, "Duplicate topic id.")
        for topic_id, times in self._ids.items():
            topic = self._image.topics_by_id.get(topic_id)
            if times == 1 and topic is None:
                self.add(None, topic_id, UNKNOWN_TOPIC_ID)
            elif times == 1 and topic is not None:
                self.to_delete[topic_id] = topic.name
        for name, times in self._names.items():
            if times == 1:
                self._resolve_name(name)

    def _resolve_name(self, name: str) -> None:
        topic = self._image.topics.get(name)
        if topic is None:
            self.add(name, ZERO_UUID, UNKNOWN_TOPIC)
        elif topic.id in self._ids:
            self.to_delete.pop(topic.id, None)
            self._refuse(name, topic.id, "The provided topic name maps to an ID that was already supplied.")
        else:
            self.to_delete[topic.id] = name


def create_partitions(
    view: ControlView, request: CreatePartitionsRequest
) -> Decision[CreatePartitionsResponse]:
    """Decide on every topic of a request."""
    twice = named_twice(topic.name for topic in request.topics)
    results = [_result(name, ItemError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")) for name in twice]
    records: list[VersionedRecord] = []
    for topic in request.topics:
        if topic.name in twice:
            continue
        try:
            records += _add_partitions(view, topic, RECORDS_PER_REQUEST_MAX - len(records))
            results.append(_result(topic.name, FINE))
        except KafkaError as problem:
            results.append(_result(topic.name, item_error(problem)))
    return Decision(CreatePartitionsResponse(results=results), [] if request.validate_only else records)


def _result(name: str, error: ItemError) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=name, error_code=error.code, error_message=error.message)


def _add_partitions(view: ControlView, wanted: CreatePartitionsTopic, limit: int) -> list[VersionedRecord]:
    image = view.image
    topic = image.topics.get(wanted.name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    present = len(topic.partitions)
    if wanted.count == present:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
    if wanted.count < present:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {wanted.name} currently has {present} partition(s); {wanted.count} would not be an "
            "increase.",
        )
    additional = wanted.count - present
    assignments = wanted.assignments
    if assignments is not None and len(assignments) != additional:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {additional} additional partition(s), but only {len(assignments)} "
            "assignment(s) were specified.",
        )
    if additional > limit:
        # Kafka would try, and run out of memory for large enough numbers.
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    factor = len(next(iter(topic.partitions.values())).replicas)
    if assignments is not None:
        partitions = [
            manual_partition(view, each.broker_ids, factor, present + position)
            for position, each in enumerate(assignments)
        ]
    else:
        partitions = at_once(placing(view, additional, factor))
    version = image.metadata_version
    return [
        (each.record(topic.id, index, version, elr=image.elr_enabled), version.partition_record)
        for index, each in enumerate(partitions, present)
    ]
