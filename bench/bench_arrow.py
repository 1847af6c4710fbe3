"""Columns against records one by one, in both directions.

The per-record side does what a user without the columnar reader would do: check each batch, read its records,
collect each field in a list, make Arrow arrays of the lists; and backwards, lists of the columns, a tuple per
record, one batch at a time. Both sides end with equal columns, or with the same bytes."""

import random
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from bench.harness import Row, alternate, spell_time
from headrace.records.arrow_builder import build_batches
from headrace.records.arrow_reader import read_columns, schema
from headrace.records.batch import batches
from headrace.records.builder import NewRecord, build_batch
from headrace.records.compression import Compression
from headrace.records.reader import read_records

ROUNDS = 5
BATCH_BYTES = 16384
TARGET = 5.0


@dataclass(slots=True)
class Data:
    """Batches, and the columns they hold."""

    name: str
    fetched: bytes
    columns: pa.RecordBatch
    codec: Compression


def make(
    name: str, size: int, spread: int = 0, headers: int = 0, codec: Compression = Compression.NONE
) -> Data:
    """About 4 MB of text values of `size` bytes, give or take `spread`, in batches of 16 KB."""
    chance = random.Random(size)
    count = 4_000_000 // (size + 30)
    pairs = [("trace-id", b"0123456789abcdef"), ("source", None)][:headers]
    records = [
        NewRecord(
            1_700_000_000_000 + index // 10,
            b"key-%08d" % chance.randrange(10**8),
            chance.randbytes(size).hex()[: size + chance.randint(-spread, spread)].encode(),
            pairs,
        )
        for index in range(count)
    ]
    per_batch = max(BATCH_BYTES // (size + 25 + 30 * headers), 1)
    fetched = b"".join(
        build_batch(records[first : first + per_batch], base_offset=first, compression=codec)
        for first in range(0, count, per_batch)
    )
    return Data(name, fetched, read_columns(fetched), codec)


def read_one_by_one(data: Data) -> pa.RecordBatch:
    offsets, times, kinds, keys, values, lists = [], [], [], [], [], []
    for batch in batches(data.fetched):
        if not batch.crc_is_valid():
            raise AssertionError("a batch of the benchmark is corrupt")
        for offset, timestamp, key, value, headers in read_records(batch):
            offsets.append(offset)
            times.append(timestamp)
            kinds.append(batch.timestamp_type)
            keys.append(key)
            values.append(value)
            lists.append([{"key": name, "value": item} for name, item in headers] if headers else headers)
    columns = zip((offsets, times, kinds, keys, values, lists), schema(), strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in columns], schema=schema()
    )


def build_one_by_one(data: Data, counts: list[int]) -> list[bytes]:
    times = data.columns["timestamp"].cast(pa.int64()).to_pylist()
    keys, values = data.columns["key"].to_pylist(), data.columns["value"].to_pylist()
    lists = data.columns["headers"].to_pylist()
    built = []
    first = 0
    for count in counts:
        records = [
            NewRecord(
                times[row], keys[row], values[row], [(item["key"], item["value"]) for item in lists[row]]
            )
            for row in range(first, first + count)
        ]
        built.append(build_batch(records, base_offset=first, compression=data.codec))
        first += count
    return built


def compare(name: str, count: int, ours: Callable[[], object], theirs: Callable[[], object]) -> Row:
    our_time, their_time = alternate(ours, theirs, rounds=ROUNDS)
    return Row(
        name,
        f"{spell_time(our_time / count)}/rec",
        f"{spell_time(their_time / count)}/rec",
        ratio=their_time / our_time,
    )


def read_row(data: Data, target: float | None, *, views: bool = False) -> Row:
    if not read_one_by_one(data).equals(data.columns):
        raise AssertionError("the two readers disagree")
    row = compare(
        f"read {data.name}{', values as views' if views else ''}",
        data.columns.num_rows,
        lambda: read_columns(data.fetched, views=views),
        lambda: read_one_by_one(data),
    )
    row.target = target
    return row


def build_row(data: Data, target: float | None) -> Row:
    def ours() -> list[bytes]:
        return list(build_batches(data.columns, batch_bytes_max=BATCH_BYTES, compression=data.codec))

    counts = [batch.count for built in ours() for batch in batches(built)]
    if build_one_by_one(data, counts) != ours():
        raise AssertionError("the two builders disagree")
    row = compare(f"build {data.name}", data.columns.num_rows, ours, lambda: build_one_by_one(data, counts))
    row.target = target
    return row


def run() -> list[Row]:
    small = make("100 B", 100)
    uneven = make("60 to 140 B", 100, spread=40)
    large = make("1 KB", 1000)
    headed = make("100 B with 2 headers", 100, headers=2)
    rows = [
        read_row(small, TARGET),
        read_row(uneven, TARGET),
        read_row(large, TARGET),
        read_row(large, TARGET, views=True),
        read_row(headed, TARGET),
        build_row(small, TARGET),
        build_row(uneven, TARGET),
        build_row(large, None),
        build_row(headed, TARGET),
    ]
    for codec in (Compression.LZ4, Compression.ZSTD):
        packed = make(f"60 to 140 B, {codec.name.lower()}", 100, spread=40, codec=codec)
        rows += (read_row(packed, None), build_row(packed, None))
    return rows
