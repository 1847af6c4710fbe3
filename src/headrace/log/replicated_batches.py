"""Looks at what a follower has fetched before it is written: nothing is changed, nothing is assumed."""

from headrace.errors import ErrorCode, KafkaError
from headrace.log.log_errors import OffsetsOutOfOrder
from headrace.records.batch import Batch, batches
from headrace.records.errors import CorruptBatch


def replicated_batches(records: memoryview, leader_epoch: int, name: str) -> list[Batch]:
    """The batches to be written, up to the first of an epoch beyond the follower's own.

    A batch of a later epoch comes from a leader this replica does not follow yet; it is fetched again once
    the replica knows that epoch. An incomplete batch at the end is left out as well."""
    taken: list[Batch] = []
    last_offset = -1
    for batch in batches(records):
        if batch.leader_epoch > leader_epoch:
            break
        if batch.last_offset <= last_offset:
            raise OffsetsOutOfOrder(
                f"offsets up to {last_offset} are followed by {batch.base_offset} to {batch.last_offset} "
                f"in an append to {name}"
            )
        if not batch.crc_is_valid():
            raise CorruptBatch(
                f"the batch at offset {batch.base_offset} in an append to {name} does not match its checksum"
            )
        last_offset = batch.last_offset
        taken.append(batch)
    return taken


def require_raft_epoch(found: list[Batch], leader_epoch: int, name: str) -> None:
    """The metadata quorum's leader stamps its epoch itself; anything else in its batches is a mistake."""
    for batch in found:
        if batch.leader_epoch != leader_epoch:
            raise KafkaError(
                ErrorCode.INVALID_RECORD,
                f"an append to {name} has leader epoch {batch.leader_epoch} instead of {leader_epoch}",
            )
