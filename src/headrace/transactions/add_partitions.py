"""Decides on AddPartitionsToTxn and AddOffsetsToTxn, and on whether a partition takes part already."""

from dataclasses import dataclass

from headrace.errors import ErrorCode, KafkaError
from headrace.transactions.metadata import TransactionMetadata
from headrace.transactions.states import TransactionState
from headrace.types import TopicPartition


@dataclass(slots=True, frozen=True)
class Participation:
    """A producer and the partitions it writes to in its transaction."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: frozenset[TopicPartition]


def decide_added(
    current: TransactionMetadata | None, wanted: Participation, client_version: int, now_ms: int
) -> TransactionMetadata | None:
    """What to write; None if all partitions take part already."""
    if current is not None and current.state.is_ending:
        # The end of the transaction may bring a new producer id, so nothing can be said about this one yet.
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    known = _known(current, wanted)
    if known.state is TransactionState.ONGOING and known.partitions >= wanted.partitions:
        return None
    return known.with_partitions(wanted.partitions, now_ms, client_version)


def missing_partitions(
    current: TransactionMetadata | None, wanted: Participation
) -> frozenset[TopicPartition]:
    """The partitions that do not take part."""
    return wanted.partitions - _known(current, wanted).partitions


def _known(current: TransactionMetadata | None, wanted: Participation) -> TransactionMetadata:
    """The transaction as it stands, if it is this producer's and open to more."""
    if current is None or current.producer_id != wanted.producer_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if current.producer_epoch != wanted.producer_epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if current.state.is_ending:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    return current
