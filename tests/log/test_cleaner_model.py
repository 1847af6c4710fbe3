"""Compaction against a simple model, over random logs: producers, transactions, tombstones, codecs."""

from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.log.cleaner_plan import CleanResult
from headrace.log.segment import Segment
from headrace.records.aborted import committed
from headrace.records.compression import Compression
from headrace.records.control import ControlType
from headrace.records.reader import read_records
from headrace.testing.memory_disk import MemoryDisk
from tests.support_cleaner import (
    NOW_MS,
    RETENTION_MS,
    SETTINGS,
    KeyValue,
    ScriptedLog,
    batches_on_disk,
    survivors_on_disk,
)

PLAIN, IDEMPOTENT, TRANSACTIONAL = -1, 10, (20, 21)


@dataclass(slots=True, frozen=True)
class Append:
    records: tuple[KeyValue, ...]
    producer_id: int
    compression: Compression


@dataclass(slots=True, frozen=True)
class End:
    producer_id: int
    kind: ControlType


@dataclass(slots=True, frozen=True)
class Roll:
    gap: int


@dataclass(slots=True, frozen=True)
class Clean:
    after_ms: int
    dedupe_bytes: int


Step = Append | End | Roll | Clean

KEYS = st.one_of(st.none(), st.sampled_from([b"a", b"b", b"c", b"d", b"e" * 40]))
VALUES = st.one_of(st.none(), st.binary(max_size=8))
APPENDS = st.builds(
    Append,
    st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=5).map(tuple),
    st.sampled_from([PLAIN, IDEMPOTENT, *TRANSACTIONAL]),
    st.sampled_from(list(Compression)),
)
ENDS = st.builds(
    End, st.sampled_from(TRANSACTIONAL), st.sampled_from([ControlType.COMMIT, ControlType.ABORT])
)
ROLLS = st.builds(Roll, st.sampled_from([0, 0, 3]))
CLEANS = st.builds(
    Clean, st.sampled_from([0, RETENTION_MS // 2, RETENTION_MS]), st.sampled_from([1_000_000, 700])
)
STEPS = st.lists(st.one_of(APPENDS, APPENDS, APPENDS, ENDS, ROLLS, CLEANS), max_size=40)


class Scenario:
    """A log, its model, and the round of compaction they have come to."""

    def __init__(self, segment_bytes: int) -> None:
        self.disk = MemoryDisk()
        self.log = ScriptedLog(self.disk, replace(SETTINGS, segment_bytes=segment_bytes))
        self.now_ms = NOW_MS
        self.dirty = 0

    def do(self, step: Step) -> None:
        match step:
            case Append(records, producer_id, compression):
                self.log.append(
                    records,
                    producer_id=producer_id,
                    transactional=producer_id in TRANSACTIONAL,
                    compression=compression,
                )
            case End(producer_id, kind):
                if producer_id in self.log.open_transactions:
                    self.log.end(producer_id, kind)
            case Roll(gap):
                self.log.roll()
                self.log.skip(gap)
            case Clean(after_ms, dedupe_bytes):
                self.clean(after_ms, dedupe_bytes)

    def clean(self, after_ms: int, dedupe_bytes: int) -> None:
        self.now_ms += after_ms
        plan = self.log.plan(self.dirty, self.now_ms, dedupe_bytes)
        if plan.end_offset <= self.dirty:
            return
        view_before = committed_view(self.log)
        result = self.log.compact(self.dirty, self.now_ms, dedupe_bytes)
        assert self.dirty < result.next_dirty_offset <= plan.end_offset
        self.expect(result)
        self.dirty = result.next_dirty_offset
        assert survivors_on_disk(self.disk) == self.log.survivors
        assert committed_view(self.log) == view_before
        check_batches(self.log)

    def expect(self, result: CleanResult) -> None:
        """Tell the model what the round could know: its map ended where the next round begins."""
        self.log.expect_cleaned(self.dirty, result.next_dirty_offset, self.now_ms)
        rewritten = max((base for group in result.groups for base in group.replaces), default=-1)
        self.expect_in_rest_of_last_segment(result.next_dirty_offset, rewritten)

    def expect_in_rest_of_last_segment(self, mapped_to: int, last_rewritten: int) -> None:
        """Beyond a map that filled half-way through a segment only aborted data goes; horizons are set."""
        bases = [segment.base_offset for segment in self.log.segments] + [self.log.next_offset]
        end = min(base for base in bases if base > last_rewritten)
        kept = []
        for record in self.log.records:
            if mapped_to <= record.survivor.offset < end:
                if record.transaction is not None and not self.log.transactions[record.transaction]:
                    continue
                if record.survivor.value is None:
                    self.log.horizons.setdefault(record.batch_offset, self.now_ms + RETENTION_MS)
            kept.append(record)
        self.log.records = kept


def committed_view(log: ScriptedLog) -> dict[bytes, bytes]:
    """What a reader of committed data from the beginning ends up with: the last value of each key."""
    aborted = [
        (entry.producer_id, entry.first_offset)
        for segment in log.segments
        for entry in segment.transaction_index
    ]
    view: dict[bytes, bytes] = {}
    for batch in committed(batches_on_disk(log.disk), aborted):
        if batch.is_control or batch.base_offset >= log.stable_offset:
            continue
        for record in read_records(batch):
            if record.key is not None:
                view[record.key] = record.value or b""
                if record.value is None:
                    del view[record.key]
    return view


def check_batches(log: ScriptedLog) -> None:
    """Every batch is still what it was but for its records, and no producer's last one is missing."""
    present = batches_on_disk(log.disk)
    for batch in present:
        original = log.headers[batch.base_offset]
        assert batch.crc_is_valid()
        for name in (
            "last_offset",
            "leader_epoch",
            "producer_id",
            "producer_epoch",
            "last_sequence",
            "is_control",
        ):
            assert getattr(batch, name) == getattr(original, name), name
    offsets = [batch.base_offset for batch in present]
    assert offsets == sorted(set(offsets))
    last_offsets = {batch.last_offset for batch in present}
    for last in log.last_records.values():
        assert last.data_offset in last_offsets
    markers = {batch.base_offset for batch in present if batch.is_control}
    listed = [entry for segment in log.segments for entry in segment.transaction_index]
    for entry in log.aborted:
        is_left = any(
            batch.producer_id == entry.producer_id
            and not batch.is_control
            and entry.first_offset <= batch.base_offset < entry.last_offset
            for batch in present
        )
        if is_left:
            assert entry.last_offset in markers
            assert entry in listed
    for segment in log.segments[:-1]:
        reopened = Segment.open(log.disk, log.directory, segment.base_offset, log.settings, NOW_MS)
        reopened.sanity_check()


@settings(max_examples=400, deadline=None)
@given(STEPS, st.sampled_from([400, 1_000, 1_000_000]))
def test_compaction_leaves_what_the_model_says(steps: list[Step], segment_bytes: int) -> None:
    scenario = Scenario(segment_bytes)
    for step in steps:
        scenario.do(step)
    for producer_id in list(scenario.log.open_transactions):
        scenario.log.end(producer_id, ControlType.COMMIT)
    scenario.log.roll()
    for _ in range(3):
        scenario.clean(RETENTION_MS, 1_000_000)
        scenario.log.append([(b"z", b"z")])
        scenario.log.roll()
