"""The records on disk with their type and version prefixes, against logs that Kafka wrote."""

import tarfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from uuid import UUID

import pytest

from headrace.protocol.codec import encode
from headrace.protocol.disk_records.cluster_metadata import PartitionChangeRecord, TopicRecord
from headrace.protocol.disk_records.consumer_protocol import ConsumerProtocolSubscription
from headrace.protocol.disk_records.control_records import (
    EndTxnMarker,
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from headrace.protocol.disk_records.offsets import OffsetCommitKey, OffsetCommitValue
from headrace.protocol.disk_records.producer_snapshot import ProducerSnapshot
from headrace.protocol.disk_records.remote_log_metadata import RemotePartitionDeleteMetadataRecord
from headrace.protocol.disk_records.share_group_state import ShareSnapshotKey, ShareSnapshotValue
from headrace.protocol.disk_records.transaction_state import TransactionLogKey, TransactionLogValue
from headrace.protocol.errors import MalformedMessage, UnencodableMessage
from headrace.protocol.prefixed import (
    GROUP_LOG,
    SHARE_LOG,
    TRANSACTION_LOG,
    CoordinatorRecords,
    decode_metadata_record,
    decode_remote_log_record,
    decode_versioned,
    encode_metadata_record,
    encode_remote_log_record,
    encode_versioned,
)
from headrace.protocol.record_table import GROUP_RECORDS, METADATA_RECORDS
from headrace.records.batch import batches
from headrace.records.reader import Record, read_records

FIXTURES = Path(__file__).parent.parent / "fixtures"
ARCHIVES = ("kafka-4.3.1-clean-shutdown.tar.gz", "kafka-4.3.1-killed.tar.gz")


@cache
def files_of(archive: str) -> dict[str, bytes]:
    """The files of a log directory that Kafka left behind."""
    found = {}
    with tarfile.open(FIXTURES / archive) as unpacked:
        for member in unpacked.getmembers():
            if member.isfile() and (stream := unpacked.extractfile(member)):
                found[member.name] = stream.read()
    return found


def records_of(archive: str, topic: str) -> Iterator[tuple[Record, bool]]:
    """Every record of a topic's logs, and whether it is a control record."""
    for name, data in files_of(archive).items():
        if f"/{topic}-" in name and name.endswith((".log", ".checkpoint")):
            for batch in batches(data):
                for record in read_records(batch):
                    yield record, batch.is_control


@pytest.mark.parametrize("archive", ARCHIVES)
def test_metadata_records_of_kafka_are_read_and_written_back(archive: str) -> None:
    seen = set()
    for record, is_control in records_of(archive, "__cluster_metadata"):
        if not is_control:
            assert record.value is not None
            message, version = decode_metadata_record(record.value)
            assert encode_metadata_record(message, version) == record.value
            seen.add(type(message).__name__)
    assert {"TopicRecord", "PartitionRecord", "RegisterBrokerRecord", "FeatureLevelRecord"} <= seen


CONTROL_CLASSES = {
    2: LeaderChangeMessage,
    3: SnapshotHeaderRecord,
    4: SnapshotFooterRecord,
    5: KRaftVersionRecord,
    6: VotersRecord,
}


@pytest.mark.parametrize("archive", ARCHIVES)
def test_control_records_of_the_quorum_are_read_and_written_back(archive: str) -> None:
    seen = set()
    for record, is_control in records_of(archive, "__cluster_metadata"):
        if is_control:
            assert record.key is not None
            assert record.value is not None
            cls = CONTROL_CLASSES[int.from_bytes(record.key[2:], "big")]
            message, version = decode_versioned_body(cls, record.value)
            assert encode(message, version) == record.value
            seen.add(cls.__name__)
    assert "LeaderChangeMessage" in seen


def decode_versioned_body(cls: type, value: bytes) -> tuple[LeaderChangeMessage, int]:
    """Control records of the quorum carry their version as their first field."""
    from headrace.protocol.codec import decode

    version = int.from_bytes(value[:2], "big")
    return decode(cls, version, value), version


@pytest.mark.parametrize("archive", ARCHIVES)
@pytest.mark.parametrize(
    ("topic", "log"), [("__consumer_offsets", GROUP_LOG), ("__transaction_state", TRANSACTION_LOG)]
)
def test_coordinator_records_of_kafka_are_read_and_written_back(
    archive: str, topic: str, log: CoordinatorRecords
) -> None:
    values = 0
    for record, is_control in records_of(archive, topic):
        if is_control:
            continue
        assert record.key is not None
        key = log.decode_key(record.key)
        assert log.encode_key(key) == record.key
        if record.value is not None:
            value, version = log.decode_value(key, record.value)
            assert log.encode_value(value, version) == record.value
            values += 1
    assert values > 0


@pytest.mark.parametrize("archive", ARCHIVES)
def test_producer_snapshots_of_kafka_are_read_and_written_back(archive: str) -> None:
    snapshots = [data for name, data in files_of(archive).items() if name.endswith(".snapshot") and data]
    for data in snapshots:
        snapshot, version = decode_versioned(ProducerSnapshot, data)
        assert version == 1
        assert encode_versioned(snapshot, version) == data
    assert snapshots


def test_the_prefixes_are_where_kafka_has_them() -> None:
    topic = TopicRecord(name="a", topic_id=UUID(int=1))
    assert encode_metadata_record(topic, 0) == b"\x01\x02\x00\x02a" + UUID(int=1).bytes + b"\0"
    change = PartitionChangeRecord(partition_id=1, topic_id=UUID(int=1), leader=4)
    assert encode_metadata_record(change, 2).startswith(b"\x01\x05\x02")
    key = OffsetCommitKey(group="g", topic="t", partition=2)
    assert GROUP_LOG.encode_key(key) == b"\0\1\0\1g\0\1t\0\0\0\2"
    value = OffsetCommitValue(offset=5, metadata="m", commit_timestamp=9)
    assert GROUP_LOG.encode_value(value, 3).startswith(b"\0\3")
    assert GROUP_LOG.decode_value(key, GROUP_LOG.encode_value(value, 3)) == (value, 3)
    assert TRANSACTION_LOG.encode_key(TransactionLogKey(transactional_id="x")) == b"\0\0\0\1x"
    assert encode(EndTxnMarker(coordinator_epoch=7), 0) == b"\0\0\0\7"


def test_logs_of_transactions_shares_and_tiers_come_back() -> None:
    transaction = TransactionLogValue(producer_id=4, transaction_partitions=None, next_producer_id=8)
    key = TransactionLogKey(transactional_id="x")
    assert TRANSACTION_LOG.decode_key(TRANSACTION_LOG.encode_key(key)) == key
    assert TRANSACTION_LOG.decode_value(key, TRANSACTION_LOG.encode_value(transaction, 1)) == (transaction, 1)
    share_key = ShareSnapshotKey(group_id="g", topic_id=UUID(int=5), partition=1)
    assert SHARE_LOG.decode_key(SHARE_LOG.encode_key(share_key)) == share_key
    share = ShareSnapshotValue(snapshot_epoch=3)
    assert SHARE_LOG.decode_value(share_key, SHARE_LOG.encode_value(share, 0)) == (share, 0)
    removal = RemotePartitionDeleteMetadataRecord(broker_id=3)
    assert decode_remote_log_record(encode_remote_log_record(removal, 0)) == (removal, 0)


def test_every_record_type_has_a_class_that_bears_it() -> None:
    for kind in METADATA_RECORDS:
        with pytest.raises(MalformedMessage) as caught:
            decode_metadata_record(bytes((1, kind, 99)))
        assert caught.value.message_name == METADATA_RECORDS[kind][1]
    for kind in GROUP_RECORDS:
        with pytest.raises(MalformedMessage) as caught:
            GROUP_LOG.decode_key(kind.to_bytes(2, "big"))
        assert caught.value.message_name == GROUP_RECORDS[kind][1]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "index out of range"),
        (b"\x02\x02\0", "unknown frame version 2"),
        (b"\x01\x63\0", "unknown record type 99"),
        (b"\x01\x02\x09", "unknown version"),
        (b"\x01\xff\xff\x7f\0", "is too large"),
        (b"\x01\xff\xff\xff\xff\xff\x01", "longer than 5 bytes"),
        (b"\x01\x02\0\x02a" + b"\0" * 18, "1 bytes left over"),
    ],
)
def test_bad_metadata_records_are_refused(value: bytes, reason: str) -> None:
    with pytest.raises(MalformedMessage, match=reason):
        decode_metadata_record(value)


def test_unknown_types_and_strange_messages_are_refused() -> None:
    with pytest.raises(MalformedMessage, match="unknown record type 99"):
        GROUP_LOG.decode_key(b"\0\x63")
    with pytest.raises(MalformedMessage, match="truncated"):
        GROUP_LOG.decode_key(b"\0")
    with pytest.raises(UnencodableMessage, match="no key of __consumer_offsets"):
        GROUP_LOG.encode_key(TopicRecord())
    with pytest.raises(UnencodableMessage, match="no record of this log"):
        encode_metadata_record(OffsetCommitKey(), 0)


def test_what_a_newer_member_says_is_read_as_far_as_it_is_known() -> None:
    said = encode_versioned(ConsumerProtocolSubscription(topics=["a"], rack_id="r"), 3)
    newer = b"\0\x09" + said[2:] + b"something new"
    message, version = decode_versioned(ConsumerProtocolSubscription, newer, newer_as_latest=True)
    assert (message.topics, message.rack_id, version) == (["a"], "r", 3)
    with pytest.raises(MalformedMessage, match="unknown version"):
        decode_versioned(ConsumerProtocolSubscription, newer)
