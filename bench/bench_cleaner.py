"""Compaction, in MB of log per second, beside a bare read and checksum of the same bytes."""

import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from crc32c import crc32c

from bench.harness import Row, alternate
from headrace.log.cleaner import clean
from headrace.log.cleaner_plan import CleanPlan, CleanResult, SegmentToClean
from headrace.log.offset_map import OffsetMap
from headrace.log.segment import Segment
from headrace.log.settings import LogSettings
from headrace.log.swap import discard_cleaned
from headrace.records.builder import NewRecord, build_batch
from headrace.records.compression import Compression
from headrace.system.disk import RealDisk
from headrace.system.pace import SystemPace

SETTINGS = LogSettings(cleanup_compact=True)
LOG_BYTES = 16_000_000
BATCH_BYTES = 16_384
PIECE_BYTES = 1024 * 1024
ROUNDS = 3
MAP_ENTRIES = 200_000
NOISE_BYTES = 100_000


def run() -> list[Row]:
    """One row for each kind of log, then what the map costs."""
    rows = []
    for value_bytes in (100, 1_000):
        for share_kept, distinct in (("most stays", 1.0), ("most goes", 0.05)):
            name = f"compact {value_bytes} B records, {share_kept}"
            rows.append(_compaction(name, value_bytes, distinct, Compression.NONE))
    rows.append(_compaction("compact 100 B records, most goes, lz4", 100, 0.05, Compression.LZ4))
    rows += _map_rows()
    return rows


def _compaction(name: str, value_bytes: int, distinct: float, compression: Compression) -> Row:
    scratch = Path(tempfile.mkdtemp(prefix="headrace-bench-"))
    try:
        disk = RealDisk()
        records = LOG_BYTES // (value_bytes + 30)
        segment = _write_log(disk, str(scratch), records, value_bytes, int(records * distinct), compression)
        plan = _plan(str(scratch), segment, records)

        def compact() -> CleanResult:
            return clean(RealDisk, SystemPace, plan)

        ours, bare = alternate(compact, _bare_read(segment), rounds=ROUNDS, min_seconds=0)
        result = compact()
        discard_cleaned(disk, str(scratch))
        disk.close()
        size = segment.size / 1e6
        kept = result.stats.records_written / records
        return Row(
            f"{name} ({kept:.0%} kept)", f"{size / ours:.0f} MB/s", f"{size / bare:.0f} MB/s", bare / ours
        )
    finally:
        shutil.rmtree(scratch)


def _write_log(
    disk: RealDisk, directory: str, records: int, value_bytes: int, distinct: int, compression: Compression
) -> Segment:
    segment = Segment.create(disk, directory, 0, SETTINGS, 0)
    per_batch = max(1, BATCH_BYTES // (value_bytes + 30))
    noise = random.Random(1).randbytes(NOISE_BYTES + value_bytes)
    for base in range(0, records, per_batch):
        offsets = range(base, min(base + per_batch, records))
        # A stride that is coprime to the number of keys spreads each key over the whole log.
        batch = build_batch(
            [
                NewRecord(
                    1_700_000_000_000,
                    b"user-%012d" % (n * 7_919 % distinct),
                    noise[n * 611 % NOISE_BYTES :][:value_bytes],
                )
                for n in offsets
            ],
            base_offset=base,
            compression=compression,
        )
        segment.append(offsets[-1], batch)
    segment.close()
    return segment


def _plan(directory: str, segment: Segment, end: int) -> CleanPlan:
    return CleanPlan(
        name="bench-0",
        directory=directory,
        segments=(
            SegmentToClean(0, segment.size, len(segment.offset_index) * 8, len(segment.time_index) * 12),
        ),
        first_dirty_offset=0,
        end_offset=end,
        now_ms=1_700_000_000_000,
        settings=SETTINGS,
        dedupe_bytes=134_217_728,
        dedupe_load_factor=0.9,
        bytes_per_second=float("inf"),
    )


def _bare_read(segment: Segment) -> Callable[[], int]:
    path = segment.log.path

    def read() -> int:
        checksum = 0
        with open(path, "rb", buffering=0) as file:
            while piece := file.read(PIECE_BYTES):
                checksum = crc32c(piece, checksum)
        return checksum

    return read


def _map_rows() -> list[Row]:
    keys = [b"user-%012d" % (n * 7_919 % MAP_ENTRIES) for n in range(MAP_ENTRIES)]

    records = [(offset, key, True) for offset, key in enumerate(keys)]

    def fill(offsets: OffsetMap) -> OffsetMap:
        offsets.put_all(0, records)
        return offsets

    def fill_dict() -> dict[bytes, int]:
        return {key: offset for offset, key in enumerate(keys)}

    recent, settled, plain = alternate(
        lambda: fill(OffsetMap(400 * MAP_ENTRIES * 2)),
        lambda: fill(OffsetMap(60 * MAP_ENTRIES)),
        fill_dict,
        rounds=ROUNDS,
        min_seconds=0,
    )

    def row(name: str, seconds: float) -> Row:
        return Row(
            name,
            f"{seconds / MAP_ENTRIES * 1e9:.0f} ns/key",
            f"{plain / MAP_ENTRIES * 1e9:.0f} ns/key",
            plain / seconds,
        )

    return [
        row("offset map, roomy (beside a bare dict)", recent),
        row("offset map, 60 B per key (beside a bare dict of 145 B)", settled),
    ]
