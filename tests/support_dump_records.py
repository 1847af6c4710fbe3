"""Logs made from every record type that is kept on disk, with every kind of value in every field."""

from collections.abc import Iterator
from importlib import import_module
from random import Random
from struct import pack
from typing import Any
from uuid import UUID

from headrace.protocol.codec import encode
from headrace.protocol.disk_records.control_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from headrace.protocol.message import Message
from headrace.protocol.record_table import (
    GROUP_RECORDS,
    METADATA_RECORDS,
    REMOTE_LOG_RECORDS,
    SHARE_RECORDS,
    TRANSACTION_RECORDS,
)
from headrace.protocol.schema import FieldLayout, is_flexible, layout_of
from headrace.protocol.varint import unsigned_varint
from headrace.records.builder import NewRecord, build_batch

TIMESTAMP = 1700000000000
KeyAndValue = tuple[bytes | None, bytes | None]

_TEXTS = ("", "plain", 'quote " and \\ slash /', "tab\tnew\nline\x01\x1f\x7f", "größer 漢字 🎈", "\u2028<&>")
_INTEGERS = {
    "int8": (-128, 127),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint16": (0, 2**16 - 1),
    "uint32": (0, 2**32 - 1),
}
_FLOATS = (0.0, -0.0, 1.5, 1e7, 123456789.125, 9.999e-4, 1e-3, 5e-324, -1e300, 1e10, 100.0, 0.1, 12345.678)
_CODES = {"remote_log_segment_state": 3, "remote_partition_delete_state": 2}


def random_message(cls: type[Message], version: int, rng: Random) -> Message:
    """A message whose fields of this version have random values; the others keep their defaults."""
    return _random_structure(cls, version, is_flexible(cls, version), rng)


def metadata_values(rng: Random) -> Iterator[KeyAndValue]:
    """Every metadata record in every version, and some that are none."""
    yield from _typed_values(METADATA_RECORDS, rng)
    for value in (b"", b"\x00", b"\x02", b"\x01\x63\x00", b"\x01", b"\xff\xff\x03"):
        yield None, value
    yield None, None


def remote_log_values(rng: Random) -> Iterator[KeyAndValue]:
    """Every record of tiered storage."""
    yield from _typed_values(REMOTE_LOG_RECORDS, rng)


def coordinator_values(table: dict[int, tuple[str, str, str]], rng: Random) -> Iterator[KeyAndValue]:
    """Every key with every version of its value, tombstones, and some that are neither."""
    for kind, (module, key_name, value_name) in table.items():
        messages = import_module(f"headrace.protocol.disk_records.{module}")
        key_class, value_class = getattr(messages, key_name), getattr(messages, value_name)
        for version in range(value_class.VERSION_MIN, value_class.VERSION_MAX + 1):
            for _ in range(3):
                key = pack(">h", kind) + encode(random_message(key_class, 0, rng), 0)
                value = pack(">h", version) + encode(random_message(value_class, version, rng), version)
                yield key, value
                yield key, None
        yield key, pack(">h", 99)
        yield key, b"\x00"
    yield pack(">h", 77), None
    yield b"\x00", None


def group_values(rng: Random) -> Iterator[KeyAndValue]:
    return coordinator_values(GROUP_RECORDS, rng)


def transaction_values(rng: Random) -> Iterator[KeyAndValue]:
    return coordinator_values(TRANSACTION_RECORDS, rng)


def share_values(rng: Random) -> Iterator[KeyAndValue]:
    return coordinator_values(SHARE_RECORDS, rng)


def data_log(pairs: Iterator[KeyAndValue]) -> bytes:
    """A segment with ten records to the batch."""
    records = [NewRecord(TIMESTAMP + i, key, value) for i, (key, value) in enumerate(pairs)]
    return b"".join(
        build_batch(records[start : start + 10], base_offset=start, leader_epoch=0)
        for start in range(0, len(records), 10)
    )


def control_log(rng: Random) -> bytes:
    """A segment with every kind of control record, a later one among them."""
    records: list[KeyAndValue] = [(pack(">hh", 0, kind), pack(">hi", 0, 7 + kind)) for kind in (0, 1)]
    quorum: list[type[Message]] = [LeaderChangeMessage, SnapshotHeaderRecord, SnapshotFooterRecord]
    quorum += [KRaftVersionRecord, VotersRecord]
    for kind, cls in enumerate(quorum, start=2):
        message: Any = random_message(cls, 0, rng)
        message.version = 0
        records.append((pack(">hh", 0, kind), encode(message, 0)))
    records.append((pack(">hh", 0, 42), b"later"))
    return b"".join(
        build_batch([NewRecord(TIMESTAMP, key, value)], base_offset=offset, control=True, leader_epoch=3)
        for offset, (key, value) in enumerate(records)
    )


def _typed_values(table: dict[int, tuple[str, str]], rng: Random) -> Iterator[KeyAndValue]:
    for kind, (module, name) in table.items():
        cls = getattr(import_module(f"headrace.protocol.disk_records.{module}"), name)
        for version in range(cls.VERSION_MIN, cls.VERSION_MAX + 1):
            for _ in range(3):
                message: Any = random_message(cls, version, rng)
                if table is REMOTE_LOG_RECORDS and "start_offset" in cls.FIELD_NAMES:
                    message.start_offset, message.end_offset = sorted(rng.sample(range(1000), 2))
                prefix = b"".join(unsigned_varint(number) for number in (1, kind, version))
                yield None, prefix + encode(message, version)


def _random_structure(cls: type[Message], version: int, flexible: bool, rng: Random) -> Message:
    layout = layout_of(cls, version, flexible)
    fields = [*layout.present, *(field for field in layout.tagged if field.is_present)]
    return cls(**{field.name: _random_field(field, version, flexible, rng) for field in fields})


def _random_field(field: FieldLayout, version: int, flexible: bool, rng: Random) -> Any:
    if field.is_nullable and rng.random() < 0.3:
        return None
    if field.name in _CODES:
        return rng.randint(0, _CODES[field.name])
    if field.is_array:
        # Segments of tiered storage must have epochs, so no list is ever empty there.
        shortest = 1 if field.name == "segment_leader_epochs" else 0
        return [_random_value(field, version, flexible, rng) for _ in range(rng.randint(shortest, 2))]
    return _random_value(field, version, flexible, rng)


def _random_value(field: FieldLayout, version: int, flexible: bool, rng: Random) -> Any:
    match field.kind:
        case "bool":
            return rng.random() < 0.5
        case "float64":
            return rng.choice(_FLOATS)
        case "string":
            return rng.choice(_TEXTS)
        case "bytes" | "records":
            return rng.randbytes(rng.choice((0, 1, 5)))
        case "uuid":
            return UUID(bytes=rng.randbytes(16))
        case str() as number:
            low, high = _INTEGERS[number]
            return rng.choice((low, high, 0, 1, rng.randint(low, high)))
        case structure:
            return _random_structure(structure, version, flexible, rng)
