"""Decodes the records of `__remote_log_metadata`, where tiered storage keeps track of its segments."""

from collections.abc import Callable
from typing import Any

from headrace.cli.dump.line import Fields, java_boolean
from headrace.cli.dump.message_json import message_json, uuid_text
from headrace.cli.dump.record_contents import Described, ShownRecord
from headrace.cli.dump.typed_record import NotReadable, read_typed_record
from headrace.protocol.record_table import REMOTE_LOG_RECORDS
from headrace.records.reader import Record

_SEGMENT_STATES = (
    "COPY_SEGMENT_STARTED",
    "COPY_SEGMENT_FINISHED",
    "DELETE_SEGMENT_STARTED",
    "DELETE_SEGMENT_FINISHED",
)
_PARTITION_STATES = ("DELETE_PARTITION_MARKED", "DELETE_PARTITION_STARTED", "DELETE_PARTITION_FINISHED")


def show_remote_log_record(record: Record) -> ShownRecord:
    """The value as Kafka describes it in words, and for JSON as the message it is."""
    try:
        message, version = read_typed_record(record.value, REMOTE_LOG_RECORDS)
    except NotReadable as error:
        return ShownRecord(None, f"Error at offset {record.offset}, skipping. {error}")
    name = type(message).__name__
    fields: Fields = {"type": name, "version": version, "data": message_json(message, version)}
    return ShownRecord(None, Described(_DESCRIBERS[name](message), fields))


def _segment(message: Any) -> str:
    return (
        f"RemoteLogSegmentMetadata{{remoteLogSegmentId={_segment_id(message.remote_log_segment_id)}"
        f", startOffset={message.start_offset}, endOffset={message.end_offset}, brokerId={message.broker_id}"
        f", maxTimestampMs={message.max_timestamp_ms}, eventTimestampMs={message.event_timestamp_ms}"
        f", segmentLeaderEpochs={_epochs(message)}, segmentSizeInBytes={message.segment_size_in_bytes}"
        f", customMetadata={_custom(message)}, state={_state(_SEGMENT_STATES, message)}"
        f", txnIdxEmpty={java_boolean(message.txn_index_empty)}}}"
    )


def _segment_snapshot(message: Any) -> str:
    return (
        f"RemoteLogSegmentMetadataSnapshot{{segmentId={uuid_text(message.segment_id)}"
        f", startOffset={message.start_offset}, endOffset={message.end_offset}"
        f", maxTimestampMs={message.max_timestamp_ms}, segmentLeaderEpochs={_epochs(message)}"
        f", segmentSizeInBytes={message.segment_size_in_bytes}, customMetadata={_custom(message)}"
        f", state={_state(_SEGMENT_STATES, message)}, txnIdxEmpty={java_boolean(message.txn_index_empty)}}}"
    )


def _segment_update(message: Any) -> str:
    return (
        f"RemoteLogSegmentMetadataUpdate{{remoteLogSegmentId={_segment_id(message.remote_log_segment_id)}"
        f", customMetadata={_custom(message)}, state={_state(_SEGMENT_STATES, message)}"
        f", eventTimestampMs={message.event_timestamp_ms}, brokerId={message.broker_id}}}"
    )


def _partition_delete(message: Any) -> str:
    return (
        f"RemotePartitionDeleteMetadata{{topicPartition={_partition(message.topic_id_partition)}"
        f", state={_named(_PARTITION_STATES, message.remote_partition_delete_state)}"
        f", eventTimestampMs={message.event_timestamp_ms}, brokerId={message.broker_id}}}"
    )


def _segment_id(entry: Any) -> str:
    partition = _partition(entry.topic_id_partition)
    return f"RemoteLogSegmentId{{topicIdPartition={partition}, id={uuid_text(entry.id)}}}"


def _partition(entry: Any) -> str:
    return f"{uuid_text(entry.id)}:{entry.name}-{entry.partition}"


def _epochs(message: Any) -> str:
    starts = {entry.leader_epoch: entry.offset for entry in message.segment_leader_epochs}
    return "{" + ", ".join(f"{epoch}={starts[epoch]}" for epoch in sorted(starts)) + "}"


def _custom(message: Any) -> str:
    data = message.custom_metadata
    return "Optional.empty" if data is None else f"Optional[CustomMetadata{{{len(data)} bytes}}]"


def _state(names: tuple[str, ...], message: Any) -> str:
    return _named(names, message.remote_log_segment_state)


def _named(names: tuple[str, ...], code: int) -> str:
    return names[code] if 0 <= code < len(names) else "null"


_DESCRIBERS: dict[str, Callable[[Any], str]] = {
    "RemoteLogSegmentMetadataRecord": _segment,
    "RemoteLogSegmentMetadataSnapshotRecord": _segment_snapshot,
    "RemoteLogSegmentMetadataUpdateRecord": _segment_update,
    "RemotePartitionDeleteMetadataRecord": _partition_delete,
}
