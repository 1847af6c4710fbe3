"""How batches and records of each format are printed."""

from dataclasses import dataclass

from headrace.cli.dump.control_records import ShownControl
from headrace.cli.dump.legacy_batch import LegacyBatch, LegacyRecord
from headrace.cli.dump.line import Fields, java_boolean, java_optional
from headrace.cli.dump.record_contents import ShownRecord, content_fields, content_text
from headrace.records.batch import Batch
from headrace.records.compression import Compression
from headrace.records.reader import Record

TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")
_SEQUENCE_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class BatchLine:
    """The header of a batch of format v2."""

    position: int
    batch: Batch
    compression: Compression
    is_valid: bool

    @property
    def last_sequence(self) -> int:
        batch = self.batch
        return (
            -1 if batch.base_sequence == -1 else _sequence_after(batch.base_sequence, batch.last_offset_delta)
        )

    def text(self) -> str:
        batch = self.batch
        return (
            f"baseOffset: {batch.base_offset} lastOffset: {batch.last_offset} count: {batch.count}"
            f" baseSequence: {batch.base_sequence} lastSequence: {self.last_sequence}"
            f" producerId: {batch.producer_id} producerEpoch: {batch.producer_epoch}"
            f" partitionLeaderEpoch: {batch.leader_epoch}"
            f" isTransactional: {java_boolean(batch.is_transactional)}"
            f" isControl: {java_boolean(batch.is_control)}"
            f" deleteHorizonMs: {java_optional(batch.delete_horizon_ms)} position: {self.position}"
            f" {TIMESTAMP_TYPES[batch.timestamp_type]}: {batch.max_timestamp} size: {batch.size}"
            f" magic: {batch.magic} compresscodec: {self.compression.name.lower()}"
            f" crc: {batch.crc} isvalid: {java_boolean(self.is_valid)}"
        )

    def fields(self) -> Fields:
        batch = self.batch
        return {
            "kind": "batch",
            "position": self.position,
            "size": batch.size,
            "magic": batch.magic,
            "crc": batch.crc,
            "valid": self.is_valid,
            "baseOffset": batch.base_offset,
            "lastOffset": batch.last_offset,
            "count": batch.count,
            "baseSequence": batch.base_sequence,
            "lastSequence": self.last_sequence,
            "producerId": batch.producer_id,
            "producerEpoch": batch.producer_epoch,
            "partitionLeaderEpoch": batch.leader_epoch,
            "transactional": batch.is_transactional,
            "control": batch.is_control,
            "deleteHorizonMs": batch.delete_horizon_ms,
            "timestampType": TIMESTAMP_TYPES[batch.timestamp_type],
            "maxTimestamp": batch.max_timestamp,
            "compression": self.compression.name.lower(),
        }


@dataclass(frozen=True, slots=True)
class RecordLine:
    """One record of a batch of format v2, with its contents if those are to be shown."""

    batch: Batch
    record: Record
    control: ShownControl | None
    shown: ShownRecord | None
    with_metadata: bool

    def text(self) -> str:
        return _record_text(self._metadata_text() if self.with_metadata else None, self.shown)

    def _metadata_text(self) -> str:
        record = self.record
        return (
            f"| offset: {record.offset} {TIMESTAMP_TYPES[self.batch.timestamp_type]}: {record.timestamp}"
            f" keySize: {_size(record.key)} valueSize: {_size(record.value)} sequence: {self.sequence}"
            f" headerKeys: [{','.join(name for name, _ in record.headers)}]"
            + ("" if self.control is None else f" {self.control.text()}")
        )

    @property
    def sequence(self) -> int:
        batch = self.batch
        if batch.base_sequence < 0:
            return -1
        return _sequence_after(batch.base_sequence, self.record.offset - batch.base_offset)

    def fields(self) -> Fields:
        record = self.record
        found: Fields = {"kind": "record", "offset": record.offset}
        if self.with_metadata:
            found |= {
                "timestampType": TIMESTAMP_TYPES[self.batch.timestamp_type],
                "timestamp": record.timestamp,
                "keySize": _size(record.key),
                "valueSize": _size(record.value),
                "sequence": self.sequence,
                "headers": [
                    {"name": name, **content_fields("value", value)} for name, value in record.headers
                ],
            }
        if self.control is not None:
            found["control"] = self.control.fields()
        return found | _shown_fields(self.shown)


@dataclass(frozen=True, slots=True)
class LegacyBatchLine:
    """A message of format v0 or v1, alone or with others inside."""

    position: int
    batch: LegacyBatch
    is_valid: bool

    def text(self) -> str:
        batch = self.batch
        return (
            f"offset: {batch.offset} position: {self.position} {batch.timestamp_type}: {batch.timestamp}"
            f" size: {len(batch.data)} magic: {batch.magic} compresscodec: {batch.compression.name.lower()}"
            f" crc: {batch.crc} isvalid: {java_boolean(self.is_valid)}"
        )

    def fields(self) -> Fields:
        batch = self.batch
        return {
            "kind": "batch",
            "position": self.position,
            "size": len(batch.data),
            "magic": batch.magic,
            "crc": batch.crc,
            "valid": self.is_valid,
            "lastOffset": batch.offset,
            "timestampType": batch.timestamp_type,
            "maxTimestamp": batch.timestamp,
            "compression": batch.compression.name.lower(),
        }


@dataclass(frozen=True, slots=True)
class LegacyRecordLine:
    """One message of format v0 or v1, with its contents if those are to be shown."""

    timestamp_type: str
    record: LegacyRecord
    shown: ShownRecord | None
    with_metadata: bool

    def text(self) -> str:
        record = self.record
        metadata = (
            f"| offset: {record.offset} {self.timestamp_type}: {record.timestamp}"
            f" keySize: {_size(record.key)} valueSize: {_size(record.value)}"
            f" isValid: {java_boolean(record.is_valid)} crc: {record.crc}"
        )
        return _record_text(metadata if self.with_metadata else None, self.shown)

    def fields(self) -> Fields:
        record = self.record
        found: Fields = {"kind": "record", "offset": record.offset}
        if self.with_metadata:
            found |= {
                "timestampType": self.timestamp_type,
                "timestamp": record.timestamp,
                "keySize": _size(record.key),
                "valueSize": _size(record.value),
                "crc": record.crc,
                "valid": record.is_valid,
            }
        return found | _shown_fields(self.shown)


def _record_text(metadata: str | None, shown: ShownRecord | None) -> str:
    parts = [] if metadata is None else [metadata]
    if shown is not None and shown.key is not None:
        parts.append(f"key: {content_text(shown.key)}")
    if shown is not None and shown.value is not None:
        parts.append(f"payload: {content_text(shown.value)}")
    return " ".join(["|", *parts] if parts and metadata is None else parts)


def _shown_fields(shown: ShownRecord | None) -> Fields:
    return {} if shown is None else content_fields("key", shown.key) | content_fields("value", shown.value)


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _sequence_after(sequence: int, increment: int) -> int:
    """The sequence number some records on, wrapping as Kafka's does, on nonsense in a damaged header too."""
    if sequence > _int32(_SEQUENCE_MAX - increment):
        return _int32(increment - (_SEQUENCE_MAX - sequence) - 1)
    return _int32(sequence + increment)


def _int32(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31
