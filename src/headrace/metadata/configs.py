"""Changing configurations: of topics, brokers, groups and client metrics; each resource by itself.

What a broker has to check before (its own run-time keys, duplicate keys) is not done here; this is the
controller's side."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from headrace.config.alteration import Change, ResourceType, altered, merged
from headrace.config.client_metrics import validate_client_metrics_config
from headrace.config.group import validate_group_config
from headrace.config.topic import validate_topic_config
from headrace.errors import ErrorCode, KafkaError
from headrace.metadata.control_view import ControlView
from headrace.metadata.decision import FINE, Decision, ItemError, check_record_count, item_error
from headrace.metadata.delta import ConfigResource
from headrace.metadata.snapshot import VersionedRecord
from headrace.metadata.topic_names import check_topic_name
from headrace.metadata.versions import MetadataVersion
from headrace.protocol.disk_records.cluster_metadata import ClearElrRecord, ConfigRecord
from headrace.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
)
from headrace.protocol.messages.alter_configs import (
    AlterConfigsResourceResponse as LegacyResourceResponse,
)
from headrace.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

MIN_ISR: Final = "min.insync.replicas"
CORDONED_LOG_DIRS: Final = "cordoned.log.dirs"
_VALUE_LENGTH_MAX: Final = 32_767
_CHECK_ORDER: Final = {
    name: place
    for place, name in enumerate(
        (
            "segment.bytes",
            "segment.ms",
            "segment.jitter.ms",
            "segment.index.bytes",
            "flush.messages",
            "flush.ms",
            "retention.bytes",
            "retention.ms",
            "max.message.bytes",
            "index.interval.bytes",
            "delete.retention.ms",
            "min.compaction.lag.ms",
            "max.compaction.lag.ms",
            "file.delete.delay.ms",
            "min.cleanable.dirty.ratio",
            "cleanup.policy",
            "unclean.leader.election.enable",
            "min.insync.replicas",
            "compression.type",
            "compression.gzip.level",
            "compression.lz4.level",
            "compression.zstd.level",
            "preallocate",
            "message.timestamp.type",
            "message.timestamp.before.max.ms",
            "message.timestamp.after.max.ms",
            "leader.replication.throttled.replicas",
            "follower.replication.throttled.replicas",
            "remote.storage.enable",
            "local.retention.ms",
            "local.retention.bytes",
            "remote.log.copy.disable",
            "remote.log.delete.on.disable",
            "internal.segment.bytes",
        )
    )
}
NewTexts = Mapping[str, str | None]


def incremental_alter_configs(
    view: ControlView, request: IncrementalAlterConfigsRequest
) -> Decision[IncrementalAlterConfigsResponse]:
    """Decide on operations that set, delete, append and subtract."""
    sorted_out = _SortedOut()
    for each in request.resources:
        changes = [Change(config.name, config.config_operation, config.value) for config in each.configs]
        sorted_out.add(each.resource_type, each.resource_name, changes)
    records = _decide(view, sorted_out, _incremental)
    responses = [
        AlterConfigsResourceResponse(
            error_code=error.code,
            error_message=error.message,
            resource_type=resource.type,
            resource_name=resource.name,
        )
        for resource, error in sorted_out.answers
    ]
    reply = IncrementalAlterConfigsResponse(responses=responses)
    return Decision(reply, [] if request.validate_only else records)


def _decide(
    view: ControlView,
    sorted_out: "_SortedOut",
    records_of: Callable[[ControlView, ConfigResource, Iterable[Change]], list[VersionedRecord]],
) -> list[VersionedRecord]:
    """The records of all resources that may be changed; every resource gets its own answer."""
    records: list[VersionedRecord] = []
    for resource, changes in sorted_out.changes.items():
        try:
            records += records_of(view, resource, changes)
            sorted_out.answer(resource, FINE)
        except KafkaError as problem:
            sorted_out.answer(resource, item_error(problem))
    records += clear_elr_records(view, records)
    check_record_count(records)
    return records


def alter_configs(view: ControlView, request: AlterConfigsRequest) -> Decision[AlterConfigsResponse]:
    """Decide on configurations that replace all that is set for a resource."""
    sorted_out = _SortedOut()
    for each in request.resources:
        changes = [Change(config.name, 0, config.value) for config in each.configs]
        sorted_out.add(each.resource_type, each.resource_name, changes)
    records = _decide(view, sorted_out, _replacing)
    responses = [
        LegacyResourceResponse(
            error_code=error.code,
            error_message=error.message,
            resource_type=resource.type,
            resource_name=resource.name,
        )
        for resource, error in sorted_out.answers
    ]
    return Decision(AlterConfigsResponse(responses=responses), [] if request.validate_only else records)


class _SortedOut:
    """The resources of a request, each once; those that cannot be are answered at once."""

    def __init__(self) -> None:
        self.changes: dict[ConfigResource, list[Change]] = {}
        self.answers: list[tuple[ConfigResource, ItemError]] = []
        self._twice: set[ConfigResource] = set()

    def answer(self, resource: ConfigResource, error: ItemError) -> None:
        self.answers.append((resource, error))

    def add(self, code: int, name: str, changes: list[Change]) -> None:
        resource = ConfigResource(code, name)
        if code not in set(ResourceType) or code == ResourceType.UNKNOWN:
            unknown = ItemError(ErrorCode.UNSUPPORTED_VERSION, f"Unknown resource type {code}.")
            self.answer(resource, unknown)
        elif resource in self.changes:
            del self.changes[resource]
            self._twice.add(resource)
            self.answer(resource, ItemError(ErrorCode.INVALID_REQUEST, "Duplicate resource."))
        elif resource not in self._twice:
            # Of a key that is named twice, the last word counts.
            self.changes[resource] = list({change.name: change for change in changes}.values())


def topic_creation_records(
    view: ControlView, resource: ConfigResource, changes: list[Change]
) -> list[VersionedRecord]:
    """The records of a topic's first configuration; the topic is not there yet."""
    records = _incremental(view, resource, changes, is_new=True)
    return records + clear_elr_records(view, records)


def _incremental(
    view: ControlView, resource: ConfigResource, changes: Iterable[Change], *, is_new: bool = False
) -> list[VersionedRecord]:
    current = view.image.config(resource)
    new = _worth_recording(resource, current, altered(ResourceType(resource.type), current, changes))
    _check(view, resource, new, is_new=is_new)
    return _records(resource, new)


def _replacing(
    view: ControlView, resource: ConfigResource, changes: Iterable[Change]
) -> list[VersionedRecord]:
    current = view.image.config(resource)
    given: dict[str, str | None] = {change.name: change.value for change in changes}
    new = _worth_recording(resource, current, given)
    new |= {name: None for name in current if name not in given}
    _check(view, resource, new)
    return _records(resource, new)


def _worth_recording(
    resource: ConfigResource, current: Mapping[str, str], new: NewTexts
) -> dict[str, str | None]:
    """Only what changes; but a broker reloads what is set again, such as a keystore of the same name."""
    return {
        name: text
        for name, text in new.items()
        if current.get(name) != text or resource.type == ResourceType.BROKER
    }


def _records(resource: ConfigResource, new: NewTexts) -> list[VersionedRecord]:
    return [
        (
            ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=text),
            0,
        )
        for name, text in new.items()
    ]


def clear_elr_records(view: ControlView, records: Iterable[VersionedRecord]) -> list[VersionedRecord]:
    """Who is eligible depends on `min.insync.replicas`; when that changes, nobody is until a next change."""
    if not view.image.elr_enabled:
        return []
    cleared: list[VersionedRecord] = []
    for record, _ in records:
        if isinstance(record, ConfigRecord) and record.name == MIN_ISR:
            is_topic = record.resource_type == ResourceType.TOPIC
            cleared.append((ClearElrRecord(topic_name=record.resource_name if is_topic else ""), 0))
    return cleared


def _check(view: ControlView, resource: ConfigResource, new: NewTexts, *, is_new: bool = False) -> None:
    for name, text in new.items():
        _check_key(view, resource, name, text)
    texts = merged(view.image.config(resource), new)
    _check_texts(view, resource, texts)
    if not is_new:
        _check_existence(view, resource)


def _check_key(view: ControlView, resource: ConfigResource, name: str, text: str | None) -> None:
    if resource.type == ResourceType.BROKER:
        if name == MIN_ISR and view.image.elr_enabled:
            if resource.name:
                raise _invalid(f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled.")
            if text is None:
                raise _invalid(f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled.")
        if name == CORDONED_LOG_DIRS and not view.image.metadata_version.has_cordoned_log_dirs:
            raise _invalid(
                f"The {CORDONED_LOG_DIRS} configuration value cannot be set because it requires "
                f"metadata.version >= {MetadataVersion.V4_3_IV0}"
            )
    if text is not None and len(text) > _VALUE_LENGTH_MAX:
        raise _invalid(
            "The configuration value cannot be added because it exceeds the maximum value size of "
            f"{_VALUE_LENGTH_MAX} bytes."
        )


def _check_texts(view: ControlView, resource: ConfigResource, texts: dict[str, str]) -> None:
    match resource.type:
        case ResourceType.TOPIC:
            if not resource.name:
                raise _bad_request("Default topic resources are not allowed.")
            check_topic_name(resource.name)
            validate_topic_config(_in_order(texts), view.topic_defaults, view.image.config(resource))
        case ResourceType.BROKER:
            _check_broker_name(resource.name)
        case ResourceType.CLIENT_METRICS:
            validate_client_metrics_config(resource.name, texts)
        case ResourceType.GROUP:
            if not resource.name:
                raise _bad_request("Default group resources are not allowed.")
            validate_group_config(texts, view.node)
        case _:
            raise _bad_request(f"Unknown resource type {ResourceType(resource.type).name}")


def _in_order(texts: dict[str, str]) -> dict[str, str]:
    """A topic's texts in the order in which Kafka looks at them: of several wrong ones the first is told."""
    last = len(_CHECK_ORDER)
    return dict(sorted(texts.items(), key=lambda each: _CHECK_ORDER.get(each[0], last)))


def _check_broker_name(name: str) -> None:
    if not name:
        return
    try:
        broker_id = int(name)
    except ValueError:
        raise _bad_request("Unable to parse broker name as a base 10 number.") from None
    if broker_id < 0:
        raise _bad_request("Invalid negative broker ID.")


def _check_existence(view: ControlView, resource: ConfigResource) -> None:
    image = view.image
    if resource.type == ResourceType.TOPIC and resource.name not in image.topics:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{resource.name}' does not exist.")
    if resource.type == ResourceType.BROKER and resource.name:
        node_id = int(resource.name)
        if node_id not in (view.node_id, *image.brokers, *image.controllers):
            raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {node_id} found.")


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, message)


def _bad_request(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
