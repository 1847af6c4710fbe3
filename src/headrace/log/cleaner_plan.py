"""What a round of compaction is asked to do and what it reports: plain values that travel to a worker."""

from dataclasses import dataclass, field
from typing import NamedTuple

from headrace.log.settings import LogSettings
from headrace.log.sparse_index import RELATIVE_OFFSET_MAX
from headrace.log.transaction_index import AbortedTransaction


class SegmentToClean(NamedTuple):
    """A closed segment, by what grouping has to know of it."""

    base_offset: int
    size: int
    index_bytes: int
    time_index_bytes: int


class LastRecord(NamedTuple):
    """What has to be kept for a producer: the batch that ends at its last data, or else its last marker."""

    data_offset: int | None
    epoch: int


@dataclass(slots=True, frozen=True)
class CleanPlan:
    """One log's round of compaction. Segments are closed ones only, in order, from the start of the log.

    Offsets from `first_dirty_offset` up to `end_offset`, where the next segment begins, have not been through
    compaction before. `aborted_later` are the aborted transactions whose marker lies beyond `end_offset`.
    """

    name: str
    directory: str
    segments: tuple[SegmentToClean, ...]
    first_dirty_offset: int
    end_offset: int
    now_ms: int
    settings: LogSettings
    dedupe_bytes: int
    dedupe_load_factor: float
    bytes_per_second: float
    last_records: dict[int, LastRecord] = field(default_factory=dict)
    aborted_later: tuple[AbortedTransaction, ...] = ()


class CleanedGroup(NamedTuple):
    """A cleaned segment that is ready to be swapped in, and the base offsets of those it stands for."""

    base_offset: int
    replaces: tuple[int, ...]
    size: int


@dataclass(slots=True)
class CleanStats:
    """What a round read, wrote and how long it took."""

    map_bytes_read: int = 0
    map_records_read: int = 0
    map_utilisation: float = 0.0
    map_ms: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    records_read: int = 0
    records_written: int = 0
    keyless_records: int = 0
    elapsed_ms: int = 0


@dataclass(slots=True, frozen=True)
class CleanResult:
    """The cleaned segments in order, and the first offset that still is dirty once they are in place."""

    groups: tuple[CleanedGroup, ...]
    next_dirty_offset: int
    stats: CleanStats


def group_segments(
    segments: list[SegmentToClean], settings: LogSettings, end_offset: int
) -> list[list[SegmentToClean]]:
    """Neighbours to be cleaned into one segment, so that small remains do not stay separate for ever.

    A group's logs and indexes together stay within a segment's limits, and its offsets within what an index
    can express relative to the first one's base."""
    groups: list[list[SegmentToClean]] = []
    for position, segment in enumerate(segments):
        following = segments[position + 1].base_offset if position + 1 < len(segments) else end_offset
        if groups and _fits(groups[-1], segment, following - 1, settings):
            groups[-1].append(segment)
        else:
            groups.append([segment])
    return groups


def _fits(
    group: list[SegmentToClean], segment: SegmentToClean, last_offset: int, settings: LogSettings
) -> bool:
    together = [*group, segment]
    return (
        sum(each.size for each in together) <= settings.segment_bytes
        and sum(each.index_bytes for each in together) <= settings.segment_index_bytes
        and sum(each.time_index_bytes for each in together) <= settings.segment_index_bytes
        and (segment.size == 0 or last_offset - group[0].base_offset <= RELATIVE_OFFSET_MAX)
    )
