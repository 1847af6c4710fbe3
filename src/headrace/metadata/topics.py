"""Creating topics: names, placement, configuration; each topic of a request by itself."""

from collections.abc import Callable
from typing import Final

from headrace.config.alteration import Change, Operation, ResourceType
from headrace.errors import ErrorCode, KafkaError
from headrace.metadata.configs import topic_creation_records
from headrace.metadata.control_view import ControlView
from headrace.metadata.creation_configs import creation_configs
from headrace.metadata.decision import STEP, Decision, ItemError, Steps, check_record_count, item_error
from headrace.metadata.delta import ConfigResource
from headrace.metadata.ids import random_id
from headrace.metadata.partitions import RECOVERED, PartitionState
from headrace.metadata.placement import PlacementRefused, Placer
from headrace.metadata.snapshot import VersionedRecord
from headrace.metadata.topic_names import (
    check_topic_name,
    has_collision_characters,
    named_twice,
    unified,
    unified_names,
)
from headrace.protocol.disk_records.cluster_metadata import TopicRecord
from headrace.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from headrace.raft.settings import METADATA_PARTITION

PARTITIONS_PER_REQUEST_MAX: Final = 10_000
Describable = Callable[[str], bool]


def create_topics(
    view: ControlView, request: CreateTopicsRequest, is_describable: Describable = lambda name: True
) -> Steps[Decision[CreateTopicsResponse]]:
    """Decide on every topic of a request. `is_describable` says whose configuration may be told."""
    names = [topic.name for topic in request.topics]
    twice = named_twice(names)
    allowed = [
        topic
        for topic in request.topics
        if topic.name not in twice and topic.name != METADATA_PARTITION.topic
    ]
    _check_partition_count(view, allowed)
    records: list[VersionedRecord] = []
    results = []
    taken = unified_names(view.image)
    # Of thousands of topics in a request hardly one has a configuration of its own.
    inherited = creation_configs(view, {})
    for topic in allowed:
        try:
            _check_name(view, topic.name, taken)
            result, created = yield from _create(view, topic, is_describable(topic.name), inherited)
            records += created
        except KafkaError as problem:
            result = _refused(topic.name, item_error(problem))
        results.append(result)
    results += [
        _refused(name, ItemError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")) for name in twice
    ]
    metadata_topic = METADATA_PARTITION.topic
    if metadata_topic in names and metadata_topic not in twice:
        reason = f"Creation of internal topic {metadata_topic} is prohibited."
        results.append(_refused(metadata_topic, ItemError(ErrorCode.INVALID_REQUEST, reason)))
    check_record_count(records)
    return Decision(CreateTopicsResponse(topics=results), [] if request.validate_only else records)


def _refused(name: str, error: ItemError) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=error.code, error_message=error.message)


def _check_partition_count(view: ControlView, topics: list[CreatableTopic]) -> None:
    total = 0
    for topic in topics:
        if topic.assignments:
            total += len(topic.assignments)
        elif topic.num_partitions == -1:
            total += view.config.integer("num.partitions")
        else:
            total += max(0, topic.num_partitions)
    if total > PARTITIONS_PER_REQUEST_MAX:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")


def _check_name(view: ControlView, name: str, taken: dict[str, str]) -> None:
    if name in view.image.topics:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    check_topic_name(name)
    other = taken.get(unified(name)) if has_collision_characters(name) else None
    if other is not None:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}"
        )


def _create(
    view: ControlView, topic: CreatableTopic, describable: bool, inherited: list[CreatableTopicConfigs]
) -> Steps[tuple[CreatableTopicResult, list[VersionedRecord]]]:
    image = view.image
    texts, config_records = _configs(view, topic)
    partitions = _manual(view, topic) if topic.assignments else (yield from _placed(view, topic))
    topic_id = random_id(view.entropy)
    version = image.metadata_version
    records: list[VersionedRecord] = [(TopicRecord(name=topic.name, topic_id=topic_id), 0), *config_records]
    for index, partition in enumerate(partitions):
        record = partition.record(topic_id, index, version, elr=image.elr_enabled)
        records.append((record, version.partition_record))
        if index % STEP == STEP - 1:
            yield
    result = CreatableTopicResult(name=topic.name, topic_id=topic_id, error_message=None)
    if describable:
        result.num_partitions = len(partitions)
        result.replication_factor = len(partitions[0].replicas)
        result.configs = creation_configs(view, texts) if texts else inherited
    else:
        result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return result, records


def _configs(view: ControlView, topic: CreatableTopic) -> tuple[dict[str, str], list[VersionedRecord]]:
    absent = [config.name for config in topic.configs if config.value is None]
    if absent:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(absent)}"
        )
    texts = {config.name: config.value or "" for config in topic.configs}
    if not texts:
        return texts, []
    changes = [Change(name, Operation.SET, text) for name, text in texts.items()]
    resource = ConfigResource(ResourceType.TOPIC, topic.name)
    return texts, topic_creation_records(view, resource, changes)


def new_partition(view: ControlView, replicas: tuple[int, ...], isr: tuple[int, ...]) -> PartitionState:
    """A partition as it begins."""
    return PartitionState(
        replicas,
        tuple(view.default_directory(broker_id) for broker_id in replicas),
        isr,
        (),
        (),
        isr[0],
        RECOVERED,
        0,
        0,
        (),
        (),
    )


def _manual(view: ControlView, topic: CreatableTopic) -> list[PartitionState]:
    for what, value in (
        ("replication factor", topic.replication_factor),
        ("numPartitions", topic.num_partitions),
    ):
        if value != -1:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"A manual partition assignment was specified, but {what} was not set to -1.",
            )
    partitions: dict[int, PartitionState] = {}
    factor: int | None = None
    for assignment in topic.assignments:
        index = assignment.partition_index
        if index in partitions:
            raise _bad_assignment(f"Found multiple manual partition assignments for partition {index}")
        partitions[index] = manual_partition(view, assignment.broker_ids, factor, index)
        factor = len(assignment.broker_ids)
    if set(partitions) != set(range(len(partitions))):
        raise _bad_assignment("partitions should be a consecutive 0-based integer sequence")
    return [partitions[index] for index in range(len(partitions))]


def manual_partition(
    view: ControlView, broker_ids: list[int], factor: int | None, index: int
) -> PartitionState:
    """A partition with the replicas that were asked for; `factor` is how many its topic's others have."""
    start = "The manual partition assignment includes"
    if not broker_ids:
        raise _bad_assignment(f"{start} an empty replica list.")
    previous: int | None = None
    for broker_id in sorted(broker_ids):
        if broker_id not in view.image.brokers:
            raise _bad_assignment(f"{start} broker {broker_id}, but no such broker is registered.")
        if broker_id == previous:
            raise _bad_assignment(f"{start} the broker {broker_id} more than once.")
        previous = broker_id
    if factor is not None and len(broker_ids) != factor:
        raise _bad_assignment(
            f"{start} a partition with {len(broker_ids)} replica(s), but this is not consistent with "
            f"previous partitions, which have {factor} replica(s)."
        )
    isr = tuple(broker_id for broker_id in broker_ids if view.is_active(broker_id))
    if not isr:
        raise _bad_assignment(
            f"All brokers specified in the manual partition assignment for partition {index} are fenced or "
            "in controlled shutdown."
        )
    return new_partition(view, tuple(broker_ids), isr)


def _bad_assignment(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)


def _placed(view: ControlView, topic: CreatableTopic) -> Steps[list[PartitionState]]:
    if topic.replication_factor < -1 or topic.replication_factor == 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if topic.num_partitions < -1 or topic.num_partitions == 0:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."
        )
    count, factor = topic.num_partitions, topic.replication_factor
    if count == -1:
        count = view.config.integer("num.partitions")
    if factor == -1:
        factor = view.config.integer("default.replication.factor")
    try:
        return (yield from placing(view, count, factor))
    except PlacementRefused as problem:
        raise KafkaError(problem.code, _times(factor) + problem.message) from None


def placing(view: ControlView, count: int, factor: int) -> Steps[list[PartitionState]]:
    """New partitions, placed where there is room."""
    placer = Placer((each for each in view.image.brokers.values() if each.takes_partitions), view.entropy)
    partitions = []
    for number in range(1, count + 1):
        replicas = placer.place(factor)
        isr = tuple(replica for replica in replicas if view.is_active(replica))
        if not isr:
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"{_times(factor)}All brokers are currently fenced or in controlled shutdown.",
            )
        partitions.append(new_partition(view, replicas, isr))
        if number % STEP == 0:
            yield
    return partitions


def _times(factor: int) -> str:
    return f"Unable to replicate the partition {factor} time(s): "
