"""Recalls what snapshots leave out: the batches of a producer before its last one.

A producer may have several batches under way when a broker stops, and retries them from the first on. Kafka's
snapshots keep the last batch of each producer only, so the ones before it are looked up in the log's tail."""

from typing import Final

from headrace.log.log_errors import CorruptLog
from headrace.log.producer_entry import BATCHES_REMEMBERED, SEQUENCE_MAX, ProducerEntry, RememberedBatch
from headrace.log.producer_state import ProducerState
from headrace.log.segment import Segment
from headrace.log.segment_list import SegmentList
from headrace.log.segment_scan import scan_checked
from headrace.records.batch import Batch

#: How far to look back, in bytes: further only if there are producers of whom more is to be known.
REACHES: Final = (256 * 1024, 2 * 1024 * 1024, 16 * 1024 * 1024)


def recall_batches(producers: ProducerState, segments: SegmentList) -> None:
    """Give the producers that a snapshot has brought back the batches it has left out."""
    for reach in REACHES:
        incomplete = [entry for entry in producers.entries.values() if _may_have_more(entry)]
        if not incomplete:
            return
        if _recall(incomplete, segments, reach):
            return


def _may_have_more(entry: ProducerEntry) -> bool:
    return 0 < len(entry.batches) < BATCHES_REMEMBERED and entry.batches[0].first_sequence > 0


def _recall(incomplete: list[ProducerEntry], segments: SegmentList, reach: int) -> bool:
    """Look that far back; True if there is nothing further back."""
    found: dict[int, list[RememberedBatch]] = {entry.producer_id: [] for entry in incomplete}
    epochs = {entry.producer_id: entry.epoch for entry in incomplete}
    stretches, is_all = _tail(segments, reach)
    for segment, position in stretches:
        try:
            for checked in scan_checked(segment.log, segment.base_offset, position, segment.size):
                if checked.producer_id in found:
                    batch = Batch(checked.chunk, checked.start)
                    if batch.producer_epoch == epochs[batch.producer_id] and not batch.is_control:
                        found[batch.producer_id].append(_remembered(batch))
        except CorruptLog:
            # What can't be trusted is not recalled; readers of that stretch are told about it.
            found = {producer_id: [] for producer_id in found}
    for entry in incomplete:
        _prepend(entry, found[entry.producer_id])
    return is_all


def _tail(segments: SegmentList, reach: int) -> tuple[list[tuple[Segment, int]], bool]:
    """The last segments and where to begin in each, in order; and whether that is the whole log."""
    stretches: list[tuple[Segment, int]] = []
    segment: Segment | None = segments.active
    while segment is not None:
        if segment.size > reach:
            place = segment.offset_index.upper_bound(segment.size - reach)
            stretches.insert(0, (segment, segment.size if place is None else place.position))
            return stretches, False
        stretches.insert(0, (segment, 0))
        reach -= segment.size
        segment = segments.before(segment.base_offset)
    return stretches, True


def _remembered(batch: Batch) -> RememberedBatch:
    return RememberedBatch(
        batch.last_sequence, batch.last_offset, batch.last_offset_delta, batch.max_timestamp
    )


def _prepend(entry: ProducerEntry, found: list[RememberedBatch]) -> None:
    """Take over the batches that lead up to those known, without a gap in their sequence."""
    known = entry.batches
    for batch in reversed(found):
        if len(known) >= BATCHES_REMEMBERED:
            return
        if batch.last_offset >= known[0].last_offset:
            continue
        following = 0 if batch.last_sequence == SEQUENCE_MAX else batch.last_sequence + 1
        if following != known[0].first_sequence:
            return
        known.insert(0, batch)
