"""The producers of a partition: remembered batches, unstable offsets, expiry and snapshot files."""

import tarfile
from pathlib import Path

import pytest

from headrace.log.append_origin import AppendOrigin
from headrace.log.log_position import LogPosition
from headrace.log.producer_entry import BATCHES_REMEMBERED, ProducerEntry, RememberedBatch
from headrace.log.producer_snapshot import CorruptSnapshot, decode_snapshot, encode_snapshot
from headrace.log.producer_state import LATE_TRANSACTION_BUFFER_MS, ProducerState
from headrace.log.settings import ProducerStateSettings
from headrace.records.control import ControlType
from headrace.system.disk import RealDisk
from tests.support_log import NOW_MS, marker, only_batch, producer_batch

FIXTURES = Path(__file__).parents[1] / "fixtures"
EXPIRY_MS = 1000


@pytest.fixture
def state(tmp_path: Path) -> ProducerState:
    settings = ProducerStateSettings(producer_id_expiration_ms=EXPIRY_MS)
    return ProducerState(RealDisk(), str(tmp_path), "topic-0", settings, max_transaction_timeout_ms=60_000)


def append(state: ProducerState, data: bytearray) -> None:
    """What a log does with one batch."""
    batch = only_batch(data)
    pending = state.prepare(batch.producer_id, AppendOrigin.REPLICATION)
    completed = pending.append(batch, LogPosition(batch.base_offset), -1)
    state.update(pending)
    if completed is not None:
        state.complete(completed)
    state.end_offset = batch.next_offset


def write(state: ProducerState, producer_id: int, offset: int, **fields: object) -> None:
    append(state, producer_batch(producer_id, 0, transactional=True, base_offset=offset, **fields))  # type: ignore[arg-type]


def end(state: ProducerState, producer_id: int, offset: int, kind: ControlType = ControlType.COMMIT) -> None:
    append(state, marker(producer_id, kind, base_offset=offset))


def unstable(state: ProducerState) -> int | None:
    first = state.first_unstable()
    return None if first is None else first.offset


def test_the_last_five_batches_are_known(state: ProducerState) -> None:
    """Promise 14: the last five batches per producer are known."""
    for index in range(BATCHES_REMEMBERED + 1):
        append(state, producer_batch(1, index * 2, 2, base_offset=index * 2))
    entry = state.entries[1]
    assert entry.find_duplicate(0, 0, 1) is None
    for index in range(1, BATCHES_REMEMBERED + 1):
        found = entry.find_duplicate(0, index * 2, index * 2 + 1)
        assert found is not None
        assert (found.first_offset, found.last_offset) == (index * 2, index * 2 + 1)
    assert entry.find_duplicate(0, 2, 4) is None
    assert entry.find_duplicate(1, 2, 3) is None


def test_a_new_epoch_forgets_the_batches_of_the_old_one(state: ProducerState) -> None:
    append(state, producer_batch(1, 0))
    append(state, producer_batch(1, 0, epoch=1, base_offset=1))
    assert state.entries[1].find_duplicate(0, 0, 0) is None
    assert [batch.last_offset for batch in state.entries[1].batches] == [1]


def test_the_oldest_transaction_holds_back_the_stable_offset_until_its_marker_is_replicated(
    state: ProducerState,
) -> None:
    """Promise 15: nothing beyond the last stable offset is seen."""
    write(state, 1, 10)
    write(state, 2, 11)
    end(state, 1, 12)
    assert unstable(state) == 10
    state.forget_replicated(12)
    assert unstable(state) == 10
    state.forget_replicated(13)
    assert unstable(state) == 11
    assert state.first_undecided_offset() == 11
    end(state, 2, 13)
    state.forget_replicated(14)
    assert unstable(state) is None
    assert state.first_undecided_offset() is None


def test_the_stable_offset_of_an_ended_transaction_skips_its_own_producer(state: ProducerState) -> None:
    write(state, 1, 10)
    write(state, 2, 11)
    pending = state.prepare(1, AppendOrigin.REPLICATION)
    completed = pending.append(only_batch(marker(1, ControlType.ABORT, base_offset=12)), None, -1)
    assert completed is not None
    assert state.stable_offset_after(completed) == 11


def test_idle_producers_expire_unless_their_transaction_is_open(state: ProducerState) -> None:
    append(state, producer_batch(1, 0))
    write(state, 2, 1)
    state.begin_verification(3, 0, 0, False, NOW_MS)
    state.remove_expired(NOW_MS + EXPIRY_MS - 1)
    assert set(state.entries) == {1, 2}
    assert set(state.verifications) == {3}
    state.remove_expired(NOW_MS + EXPIRY_MS)
    assert set(state.entries) == {2}
    assert not state.verifications


def test_a_transaction_open_beyond_every_time_out_is_late(state: ProducerState) -> None:
    write(state, 1, 0)
    late = NOW_MS + 60_000 + LATE_TRANSACTION_BUFFER_MS
    assert not state.has_late_transaction(late)
    assert state.has_late_transaction(late + 1)
    end(state, 1, 1)
    assert not state.has_late_transaction(late + 1)


def test_snapshots_restore_entries_and_open_transactions(state: ProducerState, tmp_path: Path) -> None:
    append(state, producer_batch(1, 5, 3))
    write(state, 2, 3)
    snapshot = state.take_snapshot()
    assert snapshot is not None
    assert Path(snapshot.path).name == "00000000000000000004.snapshot"
    assert state.take_snapshot() is None

    again = ProducerState(RealDisk(), str(tmp_path), "topic-0", state.settings, [4])
    again.reload(0, 9, NOW_MS)
    assert again.entries.keys() == {1, 2}
    assert again.entries[1].batches == [RememberedBatch(7, 2, 2, NOW_MS)]
    assert unstable(again) == 3
    assert again.end_offset == 4


def test_expired_producers_stay_behind_on_loading(state: ProducerState, tmp_path: Path) -> None:
    append(state, producer_batch(1, 0))
    state.take_snapshot()
    again = ProducerState(RealDisk(), str(tmp_path), "topic-0", state.settings, [1])
    again.reload(0, 9, NOW_MS + EXPIRY_MS)
    assert not again.entries


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "version"])
def test_a_damaged_snapshot_is_dropped_for_the_one_before(
    state: ProducerState, tmp_path: Path, damage: str
) -> None:
    append(state, producer_batch(1, 0))
    state.take_snapshot()
    append(state, producer_batch(2, 0, base_offset=1))
    newest = state.take_snapshot()
    assert newest is not None
    path = Path(newest.path)
    data = bytearray(path.read_bytes())
    if damage == "flip":
        data[20] ^= 4
    elif damage == "cut":
        del data[-1:]
    elif damage == "empty":
        data.clear()
    else:
        data[1] = 9
    path.write_bytes(data)
    again = ProducerState(RealDisk(), str(tmp_path), "topic-0", state.settings, [1, 2])
    again.reload(0, 9, NOW_MS)
    assert set(again.entries) == {1}
    assert again.end_offset == 1
    assert not path.exists()


def test_reloading_drops_snapshots_outside_the_log(state: ProducerState, tmp_path: Path) -> None:
    for offset in range(6):
        append(state, producer_batch(1, offset, base_offset=offset))
        state.take_snapshot()
    state.reload(2, 4, NOW_MS)
    assert state.snapshot_offsets == [3, 4]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "00000000000000000003.snapshot",
        "00000000000000000004.snapshot",
    ]
    assert state.end_offset == 4
    assert state.entries[1].last_sequence == 3


def test_stray_snapshots_go_except_the_newest_beyond_the_last_segment(state: ProducerState) -> None:
    for offset in range(6):
        append(state, producer_batch(1, offset, base_offset=offset))
        state.take_snapshot()
    state.remove_stray_snapshots([0, 2, 4])
    assert state.snapshot_offsets == [2, 4, 6]
    state.remove_stray_snapshots([0, 2, 7])
    assert state.snapshot_offsets == [2]


def test_starting_afresh_leaves_nothing(state: ProducerState, tmp_path: Path) -> None:
    write(state, 1, 0)
    end(state, 1, 1)
    state.take_snapshot()
    state.start_afresh(70)
    assert state.is_empty
    assert unstable(state) is None
    assert state.end_offset == 70
    assert not list(tmp_path.iterdir())


def test_a_retired_snapshot_is_renamed(state: ProducerState, tmp_path: Path) -> None:
    append(state, producer_batch(1, 0))
    state.take_snapshot()
    retired = state.retire_snapshot(1)
    assert retired == str(tmp_path / "00000000000000000001.snapshot.deleted")
    assert [path.name for path in tmp_path.iterdir()] == ["00000000000000000001.snapshot.deleted"]
    assert state.retire_snapshot(1) is None


def test_snapshots_written_by_kafka_are_written_back_byte_for_byte() -> None:
    seen = 0
    for archive in FIXTURES.glob("*.tar.gz"):
        with tarfile.open(archive) as tar:
            for member in tar.getmembers():
                file = tar.extractfile(member) if member.name.endswith(".snapshot") else None
                if file is not None:
                    data = file.read()
                    assert encode_snapshot(decode_snapshot(data)) == data
                    seen += 1
    assert seen >= 10


def test_an_entry_without_batches_round_trips() -> None:
    entries = [ProducerEntry(9, 4, 2, 77, None)]
    assert decode_snapshot(encode_snapshot(entries)) == entries


def test_more_producers_announced_than_there_are_is_corruption() -> None:
    import crc32c

    body = (5).to_bytes(4, "big")
    data = (1).to_bytes(2, "big") + crc32c.crc32c(body).to_bytes(4, "big") + body
    with pytest.raises(CorruptSnapshot, match="announces 5 producers"):
        decode_snapshot(data)
