"""Transactional ids as records of `__transaction_state`, and back."""

from collections import defaultdict

from headrace.errors import ErrorCode, KafkaError
from headrace.protocol.disk_records.transaction_state import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)
from headrace.transactions.metadata import TransactionMetadata
from headrace.transactions.states import TransactionState
from headrace.types import TopicPartition


def key_of(transactional_id: str) -> TransactionLogKey:
    """The key of everything about one transactional id."""
    return TransactionLogKey(transactional_id=transactional_id)


def value_of(metadata: TransactionMetadata, version: int) -> TransactionLogValue:
    """The value that stands for the metadata. Version 0 of it has no room for the other producer ids, and
    none for producers of transaction version 2."""
    value = TransactionLogValue(
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_status=metadata.state,
        transaction_partitions=_by_topic(metadata),
        transaction_last_update_timestamp_ms=metadata.last_update_ms,
        transaction_start_timestamp_ms=metadata.start_ms,
    )
    if version > 0:
        value.previous_producer_id = metadata.previous_producer_id
        value.next_producer_id = metadata.next_producer_id
        value.client_transaction_version = metadata.client_version
    elif metadata.client_version:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"the cluster is not at transaction version {metadata.client_version} yet",
        )
    return value


def metadata_of(transactional_id: str, value: TransactionLogValue) -> TransactionMetadata:
    """The metadata as it was written."""
    state = TransactionState(value.transaction_status)
    topics = (value.transaction_partitions or ()) if state is not TransactionState.EMPTY else ()
    return TransactionMetadata(
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        timeout_ms=value.transaction_timeout_ms,
        last_update_ms=value.transaction_last_update_timestamp_ms,
        producer_epoch=value.producer_epoch,
        state=state,
        partitions=frozenset(
            TopicPartition(topic.topic, index) for topic in topics for index in topic.partition_ids
        ),
        start_ms=value.transaction_start_timestamp_ms,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        client_version=value.client_transaction_version,
    )


def _by_topic(metadata: TransactionMetadata) -> list[PartitionsSchema] | None:
    if metadata.state is TransactionState.EMPTY:
        return None
    topics: defaultdict[str, list[int]] = defaultdict(list)
    for topic, index in sorted(metadata.partitions):
        topics[topic].append(index)
    return [PartitionsSchema(topic=topic, partition_ids=indexes) for topic, indexes in topics.items()]
