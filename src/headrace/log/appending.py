"""Taking appends: everything is checked first, then written with one call, then taken over into the state.

A refusal leaves no trace. A failed write leaves none in the log either; it takes the directory offline."""

from typing import TYPE_CHECKING

from headrace.errors import ErrorCode, KafkaError
from headrace.log.append_info import AppendInfo
from headrace.log.append_origin import AppendOrigin
from headrace.log.leader_validation import validation_rules
from headrace.log.log_errors import UnexpectedAppendOffset
from headrace.log.log_position import LogPosition
from headrace.log.producer_append import TRANSACTION_VERSION_UNKNOWN
from headrace.log.producer_checks import ProducerChanges, check_producers
from headrace.log.producer_entry import NO_VERIFICATION_GUARD, RememberedBatch, VerificationGuard
from headrace.log.replicated_batches import replicated_batches, require_raft_epoch
from headrace.log.segment import Segment
from headrace.log.transaction_index import AbortedTransaction
from headrace.ports import BytesLike
from headrace.records.batch import Batch, stamp_offset_and_epoch
from headrace.records.rules import Validated
from headrace.records.validator import validate
from headrace.types import NO_TIMESTAMP

if TYPE_CHECKING:
    from headrace.log.partition_log import PartitionLog

_new_tuple = tuple.__new__


def append_as_leader(
    log: "PartitionLog",
    records: bytearray | memoryview | Validated,
    leader_epoch: int,
    now_ms: int,
    origin: AppendOrigin,
    guard: VerificationGuard,
    transaction_version: int,
) -> AppendInfo:
    """Validate one batch, stamp it, write it."""
    if log.health.failure is not None:
        log.health.check()
    if origin is AppendOrigin.RAFT_LEADER:
        given = records.buffer if isinstance(records, Validated) else memoryview(records)
        return append_given(log, given, leader_epoch, now_ms, origin)
    rules = log.rules.get(origin)
    if rules is None:
        rules = log.rules[origin] = validation_rules(log.partition, log.settings, origin)
    validated = validate(records, rules, now_ms)
    batch = validated.batch
    batch.base_offset = log.log_end_offset
    batch.leader_epoch = leader_epoch
    fills_buffer = batch.position == 0 and batch.size == len(batch.buffer)
    return _append(
        log,
        batch.buffer if fills_buffer else batch.data,
        [batch],
        now_ms,
        origin,
        guard,
        transaction_version,
        validated.append_time,
        is_new=True,
    )


def append_given(
    log: "PartitionLog", records: memoryview, leader_epoch: int, now_ms: int, origin: AppendOrigin
) -> AppendInfo:
    """Write batches that bring their offsets and epochs, byte for byte."""
    if log.health.failure is not None:
        log.health.check()
    found = replicated_batches(records, leader_epoch, log.partition)
    if not found:
        return AppendInfo(-1, -1, log_start_offset=log.log_start_offset)
    if origin is AppendOrigin.RAFT_LEADER:
        require_raft_epoch(found, leader_epoch, log.partition)
    first_offset, last = found[0].base_offset, found[-1]
    if first_offset < log.log_end_offset:
        raise UnexpectedAppendOffset(
            f"offset {first_offset} in an append to {log.partition} lies before its end "
            f"{log.log_end_offset}; the last offset is {last.last_offset}, the log starts at "
            f"{log.log_start_offset}",
            first_offset,
            last.last_offset,
        )
    size = last.position + last.size
    data = records if size == len(records) else records[:size]
    return _append(
        log, data, found, now_ms, origin, NO_VERIFICATION_GUARD, TRANSACTION_VERSION_UNKNOWN, NO_TIMESTAMP
    )


def _append(
    log: "PartitionLog",
    data: BytesLike,
    found: list[Batch],
    now_ms: int,
    origin: AppendOrigin,
    guard: VerificationGuard,
    transaction_version: int,
    log_append_time: int,
    *,
    is_new: bool = False,
) -> AppendInfo:
    settings = log.settings
    size = len(data)
    if size > settings.segment_bytes:
        raise KafkaError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"an append of {size} bytes to {log.partition} exceeds segment.bytes {settings.segment_bytes}",
        )
    batch = found[-1]
    last_offset = batch.base_offset + batch.last_offset_delta
    if len(found) == 1:
        max_timestamp, has_producer = batch.max_timestamp, batch.producer_id >= 0
        marks = [(last_offset, max_timestamp, size)]
    else:
        marks = [(each.last_offset, each.max_timestamp, each.size) for each in found]
        max_timestamp = max(each.max_timestamp for each in found)
        has_producer = any(each.producer_id >= 0 for each in found)
    # Producers are loaded on first use, and that has to be before the log's end moves.
    producers = log.producers
    first_offset = found[0].base_offset
    segment = log.segments.active
    changes = None
    try:
        if segment.should_roll(size, max_timestamp, last_offset, now_ms, settings):
            segment = log.roll(now_ms, first_offset)
        if has_producer:
            place = LogPosition(first_offset, segment.base_offset, segment.size)
            changes = check_producers(producers, found, place, origin, guard, transaction_version)
            if changes.duplicate is not None:
                return _answer_duplicate(log, changes.duplicate, max_timestamp)
        if log.topic_id_unwritten:
            log.write_topic_id()
        if batch.leader_epoch != log.epochs.latest_epoch or len(found) > 1:
            _note_epochs(log, found)
        if is_new:
            # Not before all is settled: whoever is refused may try again with the same bytes.
            stamp_offset_and_epoch(batch.buffer, batch.position, first_offset, batch.leader_epoch)
        segment.append(last_offset, data, marks)
        log.log_end_offset = producers.end_offset = last_offset + 1
        log.is_changed = True
        if changes is not None:
            _take_over(log, changes, segment)
    except OSError as error:
        raise log.health.fail(f"appending to {log.partition}", error) from error
    must_flush = last_offset + 1 - log.recovery_point >= settings.flush_messages
    start = log.log_start_offset
    # A named tuple's own constructor takes several times as long.
    return _new_tuple(
        AppendInfo,
        (first_offset, last_offset, max_timestamp, log_append_time, start, size, False, must_flush),
    )


def _answer_duplicate(log: "PartitionLog", known: RememberedBatch, max_timestamp: int) -> AppendInfo:
    return AppendInfo(
        known.first_offset,
        known.last_offset,
        max_timestamp,
        known.timestamp,
        log.log_start_offset,
        is_duplicate=True,
    )


def _note_epochs(log: "PartitionLog", found: list[Batch]) -> None:
    """An epoch is durable before the first record that was written in it."""
    epochs = log.epochs
    for batch in found:
        if batch.leader_epoch != epochs.latest_epoch and batch.leader_epoch >= 0:
            epochs.assign(batch.leader_epoch, batch.base_offset)


def _take_over(log: "PartitionLog", changes: ProducerChanges, segment: Segment) -> None:
    producers = log.producers
    for append in changes.appends.values():
        producers.update(append)
    for producer_id in changes.verified:
        producers.verifications.pop(producer_id, None)
    for completed in changes.completed:
        if completed.is_aborted:
            stable_offset = producers.stable_offset_after(completed)
            segment.transaction_index.append(
                AbortedTransaction(
                    completed.producer_id, completed.first_offset, completed.last_offset, stable_offset
                )
            )
        producers.complete(completed)
    log.refresh_first_unstable()
