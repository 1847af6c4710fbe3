"""A log against a simple model: any order of appends, reads, truncations, rolls, retention and crashes."""

import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from headrace.errors import ErrorCode, KafkaError
from headrace.log.append_origin import AppendOrigin
from headrace.log.log_reads import Isolation
from headrace.log.partition_log import PartitionLog
from headrace.log.settings import LogSettings
from headrace.records.aborted import committed
from headrace.records.batch import batches
from headrace.records.control import ControlType
from headrace.testing.entropy import SeededEntropy
from headrace.testing.memory_disk import Loss, MemoryDisk
from tests.support_log import NOW_MS, content, marker, open_log, plain_batch, producer_batch

SETTINGS = LogSettings(
    segment_bytes=900,
    segment_index_bytes=240,
    index_interval_bytes=200,
    file_delete_delay_ms=0,
    retention_ms=-1,
)
PRODUCERS = st.integers(1, 4)


@dataclass(slots=True)
class Stored:
    """A batch that the model expects in the log."""

    base_offset: int
    next_offset: int
    data: bytes
    producer: int = -1
    transactional: bool = False
    marker: ControlType | None = None


@dataclass(slots=True)
class Producer:
    """What the model knows of a producer, all of it derived from the batches."""

    next_sequence: int = 0
    last: tuple[int, int, int] | None = None
    transaction: int | None = None


@dataclass(slots=True)
class Model:
    """The batches in order, and the offsets that bound them."""

    stored: list[Stored] = field(default_factory=list)
    start: int = 0
    end: int = 0
    watermark: int = 0
    durable: int = 0
    checkpoint: int = 0
    epoch: int = 1

    def producers(self) -> dict[int, Producer]:
        found: dict[int, Producer] = {}
        for batch in self.stored:
            if batch.producer < 0:
                continue
            producer = found.setdefault(batch.producer, Producer())
            if batch.marker is not None:
                producer.transaction = None
                continue
            count = batch.next_offset - batch.base_offset
            producer.last = (producer.next_sequence, count, batch.base_offset)
            producer.next_sequence += count
            if batch.transactional and producer.transaction is None:
                producer.transaction = batch.base_offset
        return found

    def stable(self) -> int:
        """The first offset of a transaction that is open or whose marker the watermark has not passed."""
        opened: dict[int, int] = {}
        unstable = []
        for batch in self.stored:
            if batch.marker is not None:
                first = opened.pop(batch.producer, None)
                if first is not None and batch.base_offset >= self.watermark:
                    unstable.append(first)
            elif batch.transactional:
                opened.setdefault(batch.producer, batch.base_offset)
        return min([self.watermark, *(max(each, self.start) for each in [*unstable, *opened.values()])])

    def aborted(self) -> set[tuple[int, int]]:
        opened: dict[int, int] = {}
        found = set()
        for batch in self.stored:
            if batch.marker is not None:
                first = opened.pop(batch.producer, None)
                if first is not None and batch.marker is ControlType.ABORT:
                    found.add((batch.producer, first))
            elif batch.transactional:
                opened.setdefault(batch.producer, batch.base_offset)
        return found

    def visible(self, bound: int) -> bytes:
        return b"".join(
            batch.data
            for batch in self.stored
            if batch.next_offset > self.start and batch.next_offset <= bound
        )


class LogMachine(RuleBasedStateMachine):
    """Drives a log and its model side by side."""

    @initialize(seed=st.integers(0, 2**16))
    def begin(self, seed: int) -> None:
        self.disk = MemoryDisk(entropy=SeededEntropy(seed))
        self.log: PartitionLog = open_log(self.disk, SETTINGS)
        self.model = Model()

    # Appends

    def lead(self, data: bytearray, **facts: object) -> None:
        options: dict[str, object] = {}
        if facts.get("marker") is not None:
            options = {"origin": AppendOrigin.COORDINATOR, "transaction_version": 1}
        info = self.log.append_as_leader(data, self.model.epoch, NOW_MS, **options)  # type: ignore[arg-type]
        assert info.first_offset == self.model.end
        assert not info.is_duplicate
        self.model.stored.append(
            Stored(info.first_offset, info.last_offset + 1, bytes(data), **facts)  # type: ignore[arg-type]
        )
        self.model.end = info.last_offset + 1

    @rule(count=st.integers(1, 5), size=st.integers(1, 120))
    def append_plain(self, count: int, size: int) -> None:
        self.lead(plain_batch(count, size=size))

    @rule(producer=PRODUCERS, count=st.integers(1, 4), transactional=st.booleans())
    def append_of_producer(self, producer: int, count: int, transactional: bool) -> None:
        state = self.model.producers().get(producer, Producer())
        transactional = transactional or state.transaction is not None
        data = producer_batch(producer, state.next_sequence, count, transactional=transactional)
        self.lead(data, producer=producer, transactional=transactional)

    @rule(producer=PRODUCERS, kind=st.sampled_from([ControlType.COMMIT, ControlType.ABORT]))
    def end_transaction(self, producer: int, kind: ControlType) -> None:
        self.lead(marker(producer, kind), producer=producer, transactional=True, marker=kind)

    def known(self, producer: int) -> Producer | None:
        """A producer whose last batch lies in the log; others may be forgotten by a restart."""
        state = self.model.producers().get(producer)
        if state is None or state.last is None or state.last[2] < self.model.start:
            return None
        return state

    @rule(producer=PRODUCERS)
    def retry_the_last_batch(self, producer: int) -> None:
        """Promise 14: a retried batch returns its original offset and is not written twice."""
        state = self.known(producer)
        if state is None or state.last is None:
            return
        sequence, count, offset = state.last
        transactional = state.transaction is not None
        info = self.log.append_as_leader(
            producer_batch(producer, sequence, count, transactional=transactional), self.model.epoch, NOW_MS
        )
        assert (info.is_duplicate, info.first_offset) == (True, offset)

    @rule(producer=PRODUCERS, skipped=st.integers(1, 3))
    def leave_a_gap(self, producer: int, skipped: int) -> None:
        """Promise 14: a gap in the sequence is OUT_OF_ORDER_SEQUENCE_NUMBER."""
        state = self.known(producer)
        if state is None:
            return
        transactional = state.transaction is not None
        data = producer_batch(producer, state.next_sequence + skipped, transactional=transactional)
        with pytest.raises(KafkaError) as refused:
            self.log.append_as_leader(data, self.model.epoch, NOW_MS)
        assert refused.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    # Offsets

    @rule(part=st.floats(0, 1))
    def advance_high_watermark(self, part: float) -> None:
        """Promise 6: it moves to batch boundaries, and never back."""
        boundaries = [
            each.next_offset for each in self.model.stored if each.next_offset > self.model.watermark
        ]
        if boundaries:
            offset = boundaries[int(part * (len(boundaries) - 1))]
            assert self.log.advance_high_watermark(offset)
            self.model.watermark = offset

    @rule(part=st.floats(0, 1))
    def delete_records(self, part: float) -> None:
        """Promise 26, the log's part: the start moves up to the high watermark and no further."""
        span = self.model.stable() - self.model.start
        offset = self.model.start + int(part * span)
        assert self.log.advance_log_start(offset) == (offset > self.model.start)
        self.model.start = max(self.model.start, offset)

    @rule(part=st.floats(0, 1), whole=st.booleans())
    def truncate(self, part: float, whole: bool) -> None:
        model = self.model
        offset = model.start + int(part * (model.end - model.start))
        if whole:
            offset = max([each.base_offset for each in model.stored if each.base_offset <= offset], default=0)
            offset = max(offset, model.start)
        assert self.log.truncate_to(offset, NOW_MS) == (offset < model.end)
        if offset < model.end:
            self.cut(offset)
        model.epoch += 1
        # A crash may bring truncated batches back; `test_crash` has that.
        self.log.segments.active.log.sync()

    def cut(self, end: int) -> None:
        model = self.model
        model.stored = [each for each in model.stored if each.next_offset <= end]
        model.end = end
        model.watermark = min(model.watermark, end)
        model.durable = min(model.durable, end)
        # A truncation is followed by a checkpoint before anything else is acknowledged.
        model.checkpoint = min(model.checkpoint, end)

    @rule(gap=st.integers(0, 50))
    def truncate_fully(self, gap: int) -> None:
        offset = self.model.end + gap
        self.log.truncate_fully(offset, NOW_MS)
        self.model = Model(
            start=offset, end=offset, watermark=offset, durable=offset, epoch=self.model.epoch + 1
        )
        self.model.checkpoint = offset
        self.disk.sync_directory(self.log.directory)

    # Segments

    @rule()
    def roll(self) -> None:
        self.log.roll(NOW_MS)

    @rule()
    def flush(self) -> None:
        asyncio.run(self.log.flush(NOW_MS))
        assert self.log.recovery_point >= self.model.end
        self.model.durable = self.model.checkpoint = self.model.end

    @rule()
    def apply_retention(self) -> None:
        self.log.delete_old_segments(NOW_MS)
        asyncio.run(self.log.delete_due_files(NOW_MS))

    @precondition(lambda self: self.model.stable() == self.model.watermark)
    @rule(size=st.integers(0, 2_000))
    def apply_retention_by_size(self, size: int) -> None:
        self.log.update_settings(
            LogSettings(**{**_fields(SETTINGS), "retention_bytes": size})  # type: ignore[arg-type]
        )
        self.log.delete_old_segments(NOW_MS)
        assert self.log.log_start_offset <= self.model.watermark
        self.model.start = self.log.log_start_offset
        self.log.update_settings(SETTINGS)

    # Restarts

    @rule()
    def restart_cleanly(self) -> None:
        asyncio.run(self.log.close(NOW_MS))
        self.log = open_log(self.disk, SETTINGS, clean=True, log_start=self.model.start)
        self.model.durable = self.model.checkpoint = self.model.end
        self.after_restart()

    @rule(loss=st.sampled_from(list(Loss)), sector=st.sampled_from([1, 64, 512]))
    def crash(self, loss: Loss, sector: int) -> None:
        """Promise 27: everything durable survives; what follows it is a prefix of what was written."""
        self.disk.crash(loss, sector=sector)
        self.log = open_log(
            self.disk, SETTINGS, log_start=self.model.start, recovery_point=self.model.checkpoint
        )
        self.after_restart()

    def after_restart(self) -> None:
        model = self.model
        end = self.log.log_end_offset
        durable = max(
            (each.next_offset for each in model.stored if each.next_offset <= model.durable), default=0
        )
        assert durable <= end <= max(model.end, model.start)
        watermark = model.watermark
        self.cut(max(end, model.start))
        model.epoch += 1
        model.watermark = self.log.update_high_watermark(watermark)
        if any(each.marker is not None and each.base_offset >= model.watermark for each in model.stored):
            # Like Kafka's, snapshots keep no ended transactions, so which of them still waited for their
            # marker to be replicated is forgotten.
            self.log.advance_high_watermark(model.end)
            model.watermark = model.end

    # What always holds

    @precondition(lambda self: hasattr(self, "model"))
    @invariant()
    def offsets_agree(self) -> None:
        log, model = self.log, self.model
        assert (log.log_start_offset, log.log_end_offset) == (model.start, model.end)
        assert log.high_watermark == model.watermark
        assert log.recovery_point <= log.log_end_offset

    @rule()
    def read_everything(self) -> None:
        model = self.model
        assert content(self.log) == model.visible(model.end)
        assert content(self.log, Isolation.HIGH_WATERMARK) == model.visible(model.watermark)

    @rule()
    def read_committed(self) -> None:
        """Promise 15: never aborted data, never anything beyond the last stable offset."""
        log, model = self.log, self.model
        stable = model.stable()
        assert log.last_stable_offset == stable
        seen = list(batches(content(log, Isolation.COMMITTED)))
        told: set[tuple[int, int]] = set()
        offset = log.log_start_offset
        while True:
            answer = log.read(offset, 300, Isolation.COMMITTED)
            told |= {(each.producer_id, each.first_offset) for each in answer.aborted or ()}
            if answer.records is None:
                break
            offset = list(batches(answer.records.read()))[-1].next_offset
        expected = [
            each.base_offset
            for each in committed(batches(model.visible(stable)), model.aborted())
            if not each.is_control
        ]
        assert [each.base_offset for each in committed(seen, told) if not each.is_control] == expected

    @rule(part=st.floats(0, 1), size=st.integers(1, 500))
    def read_from_anywhere(self, part: float, size: int) -> None:
        """Promise 4: whole batches from the one that holds the offset, at least one."""
        model = self.model
        offset = model.start + int(part * (model.end - model.start))
        answer = self.log.read(offset, size)
        following = [each for each in model.stored if each.next_offset > offset]
        if not following:
            assert answer.records is None
            return
        assert answer.records is not None
        assert answer.records.read().startswith(following[0].data)


def _fields(given: LogSettings) -> dict[str, object]:
    return {name: getattr(given, name) for name in given.__dataclass_fields__}


TestLogMachine = LogMachine.TestCase
TestLogMachine.settings = settings(
    max_examples=60,
    stateful_step_count=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
