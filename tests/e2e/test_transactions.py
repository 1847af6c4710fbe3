"""Transactions of clients that others have written, at every transaction version, and those that go wrong."""

from collections.abc import Callable
from uuid import uuid4

import pytest
from confluent_kafka import KafkaException, Producer

from headrace.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from headrace.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from headrace.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from headrace.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from headrace.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from headrace.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from headrace.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from headrace.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tests.support_data import batch
from tests.support_e2e import PATIENCE_SECONDS, create_topic
from tests.support_exactly_once import TRANSACTIONAL_CLIENTS, all_values, committed_values
from tests.support_node import RawClient, RunningNode

SAFE_DOWNGRADE = 2
TRANSACTIONS = [([b"1", b"2"], True), ([b"3"], False), ([b"4"], True), ([b"5", b"6"], False), ([b"7"], True)]


def set_transaction_version(node: RunningNode, level: int) -> None:
    update = FeatureUpdateKey(
        feature="transaction.version", max_version_level=level, upgrade_type=SAFE_DOWNGRADE
    )
    with node.connect() as client:
        reply = client.ask(UpdateFeaturesRequest(feature_updates=[update]), 1, UpdateFeaturesResponse)
    assert reply.error_code == 0, reply


def state_of(node: RunningNode, transactional_id: str) -> str:
    with node.connect() as client:
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        return client.ask(request, 0, DescribeTransactionsResponse).transaction_states[0].transaction_state


@pytest.mark.parametrize("version", [0, 1, 2])
def test_every_client_commits_and_aborts_at_every_transaction_version(
    start_node: Callable[..., RunningNode], version: int
) -> None:
    node = start_node()
    if version < 2:
        set_transaction_version(node, version)
    for name, run in TRANSACTIONAL_CLIENTS.items():
        topic = create_topic(node.bootstrap, f"topic-{name}")
        run(node.bootstrap, name, topic, TRANSACTIONS)
        assert committed_values(node.bootstrap, topic) == [b"1", b"2", b"4", b"7"]
        assert all_values(node.bootstrap, topic) == [b"1", b"2", b"3", b"4", b"5", b"6", b"7"]
        assert state_of(node, name) in ("PrepareCommit", "CompleteCommit")


def test_a_second_producer_of_the_same_name_shuts_out_the_first(shared_node: RunningNode) -> None:
    topic = create_topic(shared_node.bootstrap, f"t-{uuid4()}")
    settings = {"bootstrap.servers": shared_node.bootstrap, "transactional.id": f"x-{uuid4()}"}
    first, second = Producer(settings), Producer(settings)
    first.init_transactions(PATIENCE_SECONDS)
    first.begin_transaction()
    first.produce(topic, b"first")
    first.flush(PATIENCE_SECONDS)
    second.init_transactions(PATIENCE_SECONDS)
    second.begin_transaction()
    second.produce(topic, b"second")
    second.commit_transaction(PATIENCE_SECONDS)
    with pytest.raises(KafkaException) as refused:
        first.commit_transaction(PATIENCE_SECONDS)
    assert refused.value.args[0].fatal()
    assert refused.value.args[0].name() == "_FENCED"
    assert committed_values(shared_node.bootstrap, topic) == [b"second"]


def test_a_transaction_that_is_left_open_is_aborted_after_its_time(
    start_node: Callable[..., RunningNode],
) -> None:
    node = start_node(transaction_abort_timed_out_transaction_cleanup_interval_ms="50")
    topic = create_topic(node.bootstrap, "topic")
    producer = Producer(
        {"bootstrap.servers": node.bootstrap, "transactional.id": "slow", "transaction.timeout.ms": 1_000}
    )
    producer.init_transactions(PATIENCE_SECONDS)
    producer.begin_transaction()
    producer.produce(topic, b"too slow")
    producer.flush(PATIENCE_SECONDS)
    assert all_values(node.bootstrap, topic) == [b"too slow"]
    node.wait_for(r"the transaction of slow has timed out and is aborted")
    with pytest.raises(KafkaException):
        producer.commit_transaction(PATIENCE_SECONDS)
    assert committed_values(node.bootstrap, topic) == []


def test_idle_transactional_ids_are_forgotten(start_node: Callable[..., RunningNode]) -> None:
    node = start_node(
        transactional_id_expiration_ms="1", transaction_remove_expired_transaction_cleanup_interval_ms="20"
    )
    with node.connect() as client:
        first = begin_session(client, "idle")
        while client.ask(ListTransactionsRequest(), 2, ListTransactionsResponse).transaction_states:
            continue
        again = begin_session(client, "idle")
    assert again.producer_id != first.producer_id
    assert (first.producer_epoch, again.producer_epoch) == (0, 0)


def begin_session(client: RawClient, transactional_id: str) -> InitProducerIdResponse:
    """A session, once the coordinator is there."""
    find = FindCoordinatorRequest(key=transactional_id, key_type=1)
    while client.ask(find, 1, FindCoordinatorResponse).error_code:
        continue
    wanted = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=1_000)
    while (reply := client.ask(wanted, 4, InitProducerIdResponse)).error_code:
        continue
    return reply


def test_a_hanging_transaction_is_found_and_aborted(start_node: Callable[..., RunningNode]) -> None:
    """One that its partition knows but no coordinator does: from times before partitions asked."""
    node = start_node(transaction_partition_verification_enable="false")
    topic = create_topic(node.bootstrap, "topic")
    records = batch(1, value=b"hangs", producer_id=4711, epoch=3, sequence=0, transactional=True)
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=records)])
    request = ProduceRequest(transactional_id="gone", acks=-1, timeout_ms=1_000, topic_data=[data])
    described = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0])])
    with node.connect() as client:
        reply = client.ask(request, 9, ProduceResponse)
        assert reply.responses[0].partition_responses[0].error_code == 0
        TRANSACTIONAL_CLIENTS["confluent-kafka"](node.bootstrap, "later", topic, [([b"waits"], True)])
        assert committed_values(node.bootstrap, topic) == []
        producers = client.ask(described, 0, DescribeProducersResponse).topics[0].partitions[0]
        (hanging,) = [each for each in producers.active_producers if each.current_txn_start_offset >= 0]
        assert (hanging.producer_id, hanging.producer_epoch) == (4711, 3)
        assert hanging.current_txn_start_offset == 0
        wanted = ListTransactionsRequest(producer_id_filters=[hanging.producer_id])
        assert not client.ask(wanted, 2, ListTransactionsResponse).transaction_states
        marker = WritableTxnMarker(
            producer_id=hanging.producer_id,
            producer_epoch=hanging.producer_epoch,
            coordinator_epoch=hanging.coordinator_epoch,
            topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[0])],
        )
        aborted = client.ask(WriteTxnMarkersRequest(markers=[marker]), 1, WriteTxnMarkersResponse)
        assert aborted.markers[0].topics[0].partitions[0].error_code == 0
    assert committed_values(node.bootstrap, topic) == [b"waits"]


def test_transactions_survive_a_crash_with_everything_open(start_node: Callable[..., RunningNode]) -> None:
    node = start_node()
    topic = create_topic(node.bootstrap, "topic")
    producer = Producer(
        {
            "bootstrap.servers": node.bootstrap,
            "transactional.id": "survivor",
            "metadata.recovery.strategy": "none",
            "reconnect.backoff.max.ms": 100,
            "log_level": 0,
        }
    )
    producer.init_transactions(PATIENCE_SECONDS)
    producer.begin_transaction()
    producer.produce(topic, b"before")
    producer.flush(PATIENCE_SECONDS)
    node.restart(hard=True)
    producer.produce(topic, b"after")
    producer.commit_transaction(PATIENCE_SECONDS)
    assert committed_values(node.bootstrap, topic) == [b"before", b"after"]
