"""The outward form of the records in a produce request: one complete batch of the current format.

Only the header is looked at. What is inside the batch is the log's business."""

from struct import Struct
from typing import Final, NamedTuple

from headrace.errors import ErrorCode, KafkaError
from headrace.ports import BytesLike
from headrace.records.batch import COMPRESSION_MASK, HEADER_SIZE, LOG_OVERHEAD, TRANSACTIONAL_FLAG
from headrace.records.compression import Compression

_LENGTH_AT: Final = 8
_LENGTH: Final = Struct(">i")
# Length, leader epoch, magic, checksum and attributes, as they follow the base offset.
_FRONT: Final = Struct(">iiBIh")
_PRODUCER_AT: Final = 43
_PRODUCER: Final = Struct(">qhi")
_MAGIC_AT: Final = 16
_MAGIC_NEWEST: Final = 2
_LENGTH_MIN: Final = 14
_ZSTD_SINCE: Final = 7


class ProducerOfBatch(NamedTuple):
    """Who wrote a batch."""

    producer_id: int
    epoch: int
    base_sequence: int


def is_plain(records: BytesLike | None, version: int) -> bool:
    """Whether this is what nearly all requests carry: one whole batch that `check_form` takes, without a
    transaction."""
    if records is None or len(records) < HEADER_SIZE:
        return False
    length, _, magic, _, attributes = _FRONT.unpack_from(records, _LENGTH_AT)
    return (
        magic == _MAGIC_NEWEST
        and LOG_OVERHEAD + length == len(records)
        and not attributes & TRANSACTIONAL_FLAG
        and (version >= _ZSTD_SINCE or attributes & COMPRESSION_MASK != Compression.ZSTD)
    )


def is_transactional(records: BytesLike | None) -> bool:
    """Whether the first batch is part of a transaction; CORRUPT_MESSAGE if there can't be a batch."""
    if records is None:
        return False
    size = _size_of_batch(records, 0)
    if size is None or records[_MAGIC_AT] != _MAGIC_NEWEST:
        return False
    attributes = _FRONT.unpack_from(records, _LENGTH_AT)[4]
    return bool(attributes & TRANSACTIONAL_FLAG)


def producer_of(records: BytesLike) -> ProducerOfBatch:
    """The producer of the first batch."""
    return ProducerOfBatch(*_PRODUCER.unpack_from(records, _PRODUCER_AT))


def check_form(records: BytesLike, version: int) -> None:
    """Refuse what is not exactly one complete batch that this version of the request may carry."""
    size = _size_of_batch(records, 0)
    if size is None:
        raise KafkaError(ErrorCode.INVALID_RECORD, "there is no record batch")
    if records[_MAGIC_AT] != _MAGIC_NEWEST:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"a batch of format {records[_MAGIC_AT]} is not taken")
    attributes = _FRONT.unpack_from(records, _LENGTH_AT)[4]
    if version < _ZSTD_SINCE and attributes & COMPRESSION_MASK == Compression.ZSTD:
        message = f"Produce requests with version {version} are not allowed to use ZStandard compression"
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, message)
    if _size_of_batch(records, size) is not None:
        raise KafkaError(ErrorCode.INVALID_RECORD, "there is more than one record batch")


def _size_of_batch(records: BytesLike, position: int) -> int | None:
    """The size of the batch at `position`, if all of it is there."""
    left = len(records) - position
    if left < LOG_OVERHEAD:
        return None
    (length,) = _LENGTH.unpack_from(records, position + _LENGTH_AT)
    if length < _LENGTH_MIN:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"Record size {length} is less than the minimum record overhead ({_LENGTH_MIN})",
        )
    if left <= _MAGIC_AT:
        return None
    magic = records[position + _MAGIC_AT]
    if magic > _MAGIC_NEWEST:
        signed = magic - 256 if magic > 127 else magic
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record: {signed}")
    size: int = LOG_OVERHEAD + length
    return size if size <= left else None
