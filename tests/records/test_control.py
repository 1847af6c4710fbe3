"""Control records: markers, and the quorum's records, read and built as Kafka does."""

from struct import pack
from uuid import UUID

import pytest

from headrace.protocol.disk_records.control_records import (
    Endpoint,
    KRaftVersionFeature,
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeMessageVoter,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
    VotersRecordVoter,
)
from headrace.records.batch import Batch
from headrace.records.builder import NewRecord, build_batch
from headrace.records.control import (
    ControlType,
    EndTransactionMarker,
    build_end_transaction_marker,
    control_key,
    control_type,
    read_end_transaction_marker,
)
from headrace.records.errors import MalformedRecords
from headrace.records.quorum_control import QuorumMessage, build_quorum_batch, read_quorum_records

MESSAGES: dict[ControlType, QuorumMessage] = {
    ControlType.LEADER_CHANGE: LeaderChangeMessage(
        leader_id=3, voters=[LeaderChangeMessageVoter(voter_id=3), LeaderChangeMessageVoter(voter_id=4)]
    ),
    ControlType.SNAPSHOT_HEADER: SnapshotHeaderRecord(last_contained_log_timestamp=12345),
    ControlType.SNAPSHOT_FOOTER: SnapshotFooterRecord(),
    ControlType.KRAFT_VERSION: KRaftVersionRecord(k_raft_version=1),
    ControlType.KRAFT_VOTERS: VotersRecord(
        voters=[
            VotersRecordVoter(
                voter_id=1,
                voter_directory_id=UUID(int=7),
                endpoints=[Endpoint(name="CONTROLLER", host="localhost", port=9093)],
                k_raft_version_feature=KRaftVersionFeature(min_supported_version=0, max_supported_version=1),
            )
        ]
    ),
}


def control_batch(key: bytes | None, value: bytes | None) -> Batch:
    return Batch(memoryview(build_batch([NewRecord(5, key, value)], control=True)))


@pytest.mark.parametrize("kind", [ControlType.COMMIT, ControlType.ABORT])
def test_an_end_transaction_marker_survives(kind: ControlType) -> None:
    data = build_end_transaction_marker(
        kind, producer_id=9, producer_epoch=2, coordinator_epoch=31, timestamp=1000, base_offset=7
    )
    batch = Batch(memoryview(data))
    assert batch.is_control
    assert batch.is_transactional
    assert (batch.base_sequence, batch.count, batch.size) == (-1, 1, 78)
    assert control_type(batch) is kind
    assert read_end_transaction_marker(batch) == EndTransactionMarker(kind, 31)


@pytest.mark.parametrize("kind", MESSAGES)
def test_a_record_of_the_quorum_survives(kind: ControlType) -> None:
    batch = Batch(
        memoryview(build_quorum_batch([MESSAGES[kind]], timestamp=50, leader_epoch=2, base_offset=9))
    )
    assert control_type(batch) is kind
    assert not batch.is_transactional
    (found,) = read_quorum_records(batch)
    assert (found.offset, found.timestamp, found.message) == (9, 50, MESSAGES[kind])


def test_one_batch_may_hold_several_records_of_the_quorum() -> None:
    batch = Batch(memoryview(build_quorum_batch(list(MESSAGES.values()), timestamp=50, leader_epoch=2)))
    assert [found.message for found in read_quorum_records(batch)] == list(MESSAGES.values())


def test_types_of_later_versions_are_unknown_and_passed_over() -> None:
    batch = control_batch(pack(">hh", 0, 99), b"")
    assert control_type(batch) is ControlType.UNKNOWN
    assert list(read_quorum_records(batch)) == []


def test_later_versions_of_key_and_marker_are_read_as_the_known_one() -> None:
    batch = control_batch(pack(">hhq", 3, 1, 0), pack(">hiq", 5, 31, 0))
    assert read_end_transaction_marker(batch) == EndTransactionMarker(ControlType.COMMIT, 31)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, pack(">hi", 0, 1)),
        (b"\x00\x00\x00", pack(">hi", 0, 1)),
        (pack(">hh", -1, 1), pack(">hi", 0, 1)),
        (pack(">hh", 0, 1), None),
        (pack(">hh", 0, 1), b"\x00\x00\x00"),
        (pack(">hh", 0, 1), pack(">hi", -1, 1)),
        (pack(">hh", 0, 2), pack(">hi", 0, 1)),
    ],
)
def test_a_malformed_marker_is_refused(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(MalformedRecords):
        read_end_transaction_marker(control_batch(key, value))


def test_only_control_batches_have_a_type() -> None:
    plain = Batch(memoryview(build_batch([NewRecord(5, control_key(ControlType.COMMIT), b"")])))
    empty = Batch(memoryview(build_batch([], control=True, last_offset=0)))
    for batch in (plain, empty):
        with pytest.raises(MalformedRecords):
            control_type(batch)
    with pytest.raises(MalformedRecords):
        list(read_quorum_records(plain))


def test_what_is_no_marker_cannot_be_built_as_one() -> None:
    with pytest.raises(ValueError, match="LEADER_CHANGE"):
        build_end_transaction_marker(
            ControlType.LEADER_CHANGE, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp=0
        )
    with pytest.raises(ValueError, match="UNKNOWN"):
        control_key(ControlType.UNKNOWN)
