"""Looks at what a follower has fetched before it is written: nothing is changed, nothing is assumed."""

from headrace.errors import ErrorCode, KafkaError
from headrace.log.log_errors import OffsetsOutOfOrder
from headrace.records.batch import ATTRIBUTES_FIELD, HEADER_SIZE, MAGIC, Batch, batches
from headrace.records.checksum import crc32c
from headrace.records.errors import CorruptBatch
from headrace.types import TopicPartition


def replicated_batches(records: memoryview, leader_epoch: int, partition: TopicPartition) -> list[Batch]:
    """The batches to be written, up to the first of an epoch beyond the follower's own.

    A batch of a later epoch comes from a leader this replica does not follow yet; it is fetched again once
    the replica knows that epoch. An incomplete batch at the end is left out as well."""
    if len(records) >= HEADER_SIZE:
        # Most fetches of a follower that keeps up bring one batch; walking over it would cost more.
        only = Batch(records, 0)
        if (
            only.size == len(records)
            and only.magic == MAGIC
            and only.leader_epoch <= leader_epoch
            and only.last_offset_delta >= 0
            and crc32c(records[ATTRIBUTES_FIELD:]) == only.crc
        ):
            return [only]
    taken: list[Batch] = []
    last_offset = -1
    for batch in batches(records):
        if batch.leader_epoch > leader_epoch:
            break
        if batch.base_offset + batch.last_offset_delta <= last_offset:
            raise OffsetsOutOfOrder(
                f"offsets up to {last_offset} are followed by {batch.base_offset} to {batch.last_offset} "
                f"in an append to {partition}"
            )
        start = batch.position
        if crc32c(records[start + ATTRIBUTES_FIELD : start + batch.size]) != batch.crc:
            raise CorruptBatch(
                f"the batch at offset {batch.base_offset} in an append to {partition} does not match its "
                "checksum"
            )
        last_offset = batch.base_offset + batch.last_offset_delta
        taken.append(batch)
    return taken


def require_raft_epoch(found: list[Batch], leader_epoch: int, partition: TopicPartition) -> None:
    """The metadata quorum's leader stamps its epoch itself; anything else in its batches is a mistake."""
    for batch in found:
        if batch.leader_epoch != leader_epoch:
            raise KafkaError(
                ErrorCode.INVALID_RECORD,
                f"an append to {partition} has leader epoch {batch.leader_epoch} instead of {leader_epoch}",
            )
