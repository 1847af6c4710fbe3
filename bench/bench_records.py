"""Record batches: what it costs to validate, read and build them, per record of 100 bytes.

There is no peer to beat here; the plain inspection, which parses record by record in the obvious way, stands
beside the validator's quick scan.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from bench.harness import Row, alternate, spell_time
from headrace.records.batch import Batch
from headrace.records.builder import NewRecord, build_batch
from headrace.records.compression import Compression, compress, decompress
from headrace.records.inspection import inspect
from headrace.records.reader import read_records, record_bytes
from headrace.records.rules import ValidationRules
from headrace.records.scan import scan
from headrace.records.spans import iter_keys
from headrace.records.validator import validate
from headrace.types import TopicPartition

NOW = 1_700_000_000_000
RULES = ValidationRules(TopicPartition("bench", 0), max_message_bytes=2 << 20)
VALUE_BYTES = 100
SMALL, LARGE = 150, 9_300
ROUNDS = 15
MIN_SECONDS = 0.004


@dataclass(slots=True, frozen=True)
class Sample:
    """Records of one kind; `size` tells how many fill a batch of about 16 KB or 1 MB."""

    name: str
    records: list[NewRecord]

    @property
    def size(self) -> str:
        return "16 KB" if len(self.records) < LARGE else "1 MB"


def regular(count: int) -> list[NewRecord]:
    """What a producer of fixed-size values sends."""
    return [NewRecord(NOW + n // 40, None, value(n, VALUE_BYTES)) for n in range(count)]


def irregular(count: int) -> list[NewRecord]:
    """Keys and values of many lengths, 100 bytes on average."""
    source = random.Random(1)
    return [
        NewRecord(NOW + n // 40, b"user-%d" % source.randrange(10**6), value(n, source.randrange(70, 130)))
        for n in range(count)
    ]


def with_headers(count: int) -> list[NewRecord]:
    """Irregular ones with two headers each."""
    headers = (("trace", b"0123456789abcdef"), ("span", b"01234567"))
    return [record._replace(headers=headers) for record in irregular(count)]


def value(seed: int, size: int) -> bytes:
    """Half noise, half text, so that codecs have something to do."""
    return random.Random(seed).randbytes(size // 2) + b"x" * (size - size // 2)


def run() -> list[Row]:
    """The table of this section."""
    small, large = Sample("fixed size", regular(SMALL)), Sample("fixed size", regular(LARGE))
    mixed, mixed_large = Sample("mixed sizes", irregular(SMALL)), Sample("mixed sizes", irregular(LARGE))
    headers = Sample("with headers", with_headers(SMALL))
    rows = [_header_row(small)]
    rows += [
        _validator_row(sample, Compression.NONE) for sample in (small, large, mixed, mixed_large, headers)
    ]
    rows += [_validator_row(sample, codec) for codec in list(Compression)[1:] for sample in (small, mixed)]
    rows += [_scan_row(sample) for sample in (small, large, mixed, headers)]
    rows += _single_rows(small, mixed)
    return rows


def _per_record(count: int, *calls: Callable[[], object]) -> list[float]:
    return [seconds / count for seconds in alternate(*calls, rounds=ROUNDS, min_seconds=MIN_SECONDS)]


def _header_row(sample: Sample) -> Row:
    view = memoryview(build_batch(sample.records))
    (seconds,) = alternate(partial(Batch, view, 0), rounds=ROUNDS, min_seconds=MIN_SECONDS)
    return Row("view of a batch, per batch", spell_time(seconds), "-")


def _validator_row(sample: Sample, codec: Compression) -> Row:
    """The whole validation, beside the checksum and the codec, which nobody can do without."""
    data = bytearray(build_batch(sample.records, compression=codec))
    batch = Batch(memoryview(data))

    def bare() -> object:
        batch.crc_is_valid()
        return decompress(codec, batch.payload)

    ours, floor = _per_record(len(sample.records), lambda: validate(data, RULES, NOW), bare)
    name = f"validate {codec.name.lower()}, {sample.name}, {sample.size}, per record"
    return Row(name, spell_time(ours), f"{spell_time(floor)} crc+codec")


def _scan_row(sample: Sample) -> Row:
    batch = Batch(memoryview(build_batch(sample.records)))
    data = record_bytes(batch)
    ours, plain = _per_record(
        len(sample.records),
        lambda: scan(data, batch.count, keys_required=False),
        lambda: inspect(batch, data, RULES, NOW, in_place=True),
    )
    name = f"scan beside plain inspection, {sample.name}, {sample.size}, per record"
    return Row(name, spell_time(ours), spell_time(plain), ratio=plain / ours)


def _single_rows(*samples: Sample) -> Sequence[Row]:
    rows = []
    for sample in samples:
        data = build_batch(sample.records)
        batch = Batch(memoryview(data))
        body = record_bytes(batch)
        read, keys, build = _per_record(
            len(sample.records),
            lambda batch=batch: list(read_records(batch)),  # type: ignore[misc]
            lambda batch=batch: list(iter_keys(batch)),  # type: ignore[misc]
            lambda sample=sample: build_batch(sample.records),  # type: ignore[misc]
        )
        rows.append(Row(f"read, {sample.name}, per record", spell_time(read), "-"))
        rows.append(Row(f"keys for compaction, {sample.name}, per record", spell_time(keys), "-"))
        rows.append(Row(f"build, {sample.name}, per record", spell_time(build), "-"))
        for codec in list(Compression)[1:]:
            packed = compress(codec, body)
            there, back = _per_record(
                len(sample.records), partial(compress, codec, body), partial(decompress, codec, packed)
            )
            name = f"{codec.name.lower()} there and back, {sample.name}, per record"
            rows.append(Row(name, spell_time(there), spell_time(back)))
    return rows
