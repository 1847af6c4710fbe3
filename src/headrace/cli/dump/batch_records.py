"""The records of a batch of any format, and what indexes say about a batch, read for a dump."""

from collections.abc import Iterator

from headrace.cli.dump.legacy_batch import LegacyBatch
from headrace.cli.dump.line import DumpError
from headrace.cli.dump.options import INT_MAX
from headrace.cli.dump.segment_file import FoundBatch, SegmentFile
from headrace.errors import KafkaError
from headrace.records.batch import HEADER_SIZE, Batch
from headrace.records.compression import Compression
from headrace.records.reader import Record, read_records

# A dump decompresses whatever a broker has accepted, however large its limits were set.
_DECOMPRESSED_MAX = INT_MAX


def records_of(batch: Batch) -> Iterator[Record]:
    """The records in turn; those of a compressed batch only if all of them can be read."""
    if batch.size < HEADER_SIZE:
        raise DumpError(f"{batch.size} bytes are too few for a batch")
    records = read_records(batch, _DECOMPRESSED_MAX)
    return records if batch.compression == Compression.NONE else iter(list(records))


def last_offset_of(segment: SegmentFile, found: FoundBatch) -> int:
    """The last offset of a batch, from its header."""
    return found.offset if found.is_legacy else segment.header(found).last_offset


def max_timestamp_of(segment: SegmentFile, found: FoundBatch) -> int:
    """The largest timestamp among a batch's records, or -1 if it has none."""
    try:
        if found.is_legacy:
            records = LegacyBatch(segment.view(found.position, found.size)).records()
            return max((record.timestamp for record in records), default=-1)
        return max((record.timestamp for record in records_of(segment.whole(found))), default=-1)
    except (DumpError, KafkaError) as error:
        raise DumpError(f"{segment.name}: batch at position {found.position}: {error}") from error
