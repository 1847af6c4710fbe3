"""Message formats v0 and v1, which brokers no longer accept but old segments may still hold.

Read-only and for dumps alone: nothing else in Headrace knows these formats.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple
from zlib import crc32

from headrace.cli.dump.line import DumpError
from headrace.cli.dump.options import INT_MAX
from headrace.records.compression import Compression, decompress
from headrace.records.xxhash import xxh32_short

_ENTRY_HEAD = Struct(">qi")
_RECORD_HEAD = Struct(">IbB")
_LONG = Struct(">q")
_INT = Struct(">i")
_OVERHEAD = 12
_MAGIC_END = _OVERHEAD + _RECORD_HEAD.size
_COMPRESSION_MASK = 0x07
_APPEND_TIME_FLAG = 0x08
_CHECKSUMMED_FROM = _OVERHEAD + 4
_LZ4_HEADER_END = 6
_LZ4_CONTENT_SIZE_FLAG = 0x08


class LegacyRecord(NamedTuple):
    """One message of format v0 or v1, with its own checksum."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    crc: int
    is_valid: bool


@dataclass(slots=True)
class LegacyBatch:
    """A message on its own, or one whose value holds others, compressed."""

    data: memoryview

    @property
    def offset(self) -> int:
        offset: int = _ENTRY_HEAD.unpack_from(self.data)[0]
        return offset

    @property
    def crc(self) -> int:
        crc: int = _RECORD_HEAD.unpack_from(self.data, _OVERHEAD)[0]
        return crc

    @property
    def magic(self) -> int:
        magic: int = _RECORD_HEAD.unpack_from(self.data, _OVERHEAD)[1]
        return magic

    @property
    def attributes(self) -> int:
        attributes: int = _RECORD_HEAD.unpack_from(self.data, _OVERHEAD)[2]
        return attributes

    def check_header(self) -> None:
        """Refuse what is no message of these formats before anything of it is shown."""
        if self.magic not in (0, 1):
            raise DumpError(f"there is no message format v{self.magic}")
        if self.compression == Compression.ZSTD:
            raise DumpError(f"format v{self.magic} knows no zstd")

    @property
    def compression(self) -> Compression:
        code = self.attributes & _COMPRESSION_MASK
        if code > Compression.ZSTD:
            raise DumpError(f"Unknown compression type id: {code}")
        return Compression(code)

    @property
    def timestamp_type(self) -> str:
        if self.magic == 0:
            return "NoTimestampType"
        return "LogAppendTime" if self.attributes & _APPEND_TIME_FLAG else "CreateTime"

    @property
    def timestamp(self) -> int:
        if self.magic == 0:
            return -1
        timestamp: int = _LONG.unpack_from(self.data, _MAGIC_END)[0]
        return timestamp

    @property
    def is_valid(self) -> bool:
        return crc32(self.data[_CHECKSUMMED_FROM:]) == self.crc

    def records(self) -> list[LegacyRecord]:
        """The message itself, or those inside it with their absolute offsets."""
        if self.compression == Compression.NONE:
            return [self._record(self.offset, self.timestamp)]
        value = self._key_and_value()[1]
        if value is None:
            raise DumpError("a compressed message has no value")
        if self.magic == 0 and self.compression == Compression.LZ4:
            value = _with_right_lz4_header(value)
        inner = list(_entries(memoryview(decompress(self.compression, value, INT_MAX))))
        if not inner:
            raise DumpError("a compressed message holds no messages")
        return [self._absolute(entry, inner[-1].offset) for entry in inner]

    def _absolute(self, entry: "LegacyBatch", last_relative: int) -> LegacyRecord:
        if entry.magic != self.magic:
            raise DumpError(f"a message of format v{entry.magic} inside of one of format v{self.magic}")
        if entry.compression != Compression.NONE:
            raise DumpError("a compressed message inside of a compressed message")
        offset = entry.offset
        if self.magic == 1 and self.offset:
            # Offsets inside are relative, and the wrapper carries that of its last message.
            offset += self.offset - last_relative
        timestamp = self.timestamp if self.timestamp_type == "LogAppendTime" else entry.timestamp
        return entry._record(offset, timestamp)

    def _record(self, offset: int, timestamp: int) -> LegacyRecord:
        key, value = self._key_and_value()
        return LegacyRecord(offset, timestamp, key, value, self.crc, self.is_valid)

    def _key_and_value(self) -> tuple[bytes | None, bytes | None]:
        start = _MAGIC_END + (_LONG.size if self.magic else 0)
        key, start = self._field(start)
        value, _ = self._field(start)
        return key, value

    def _field(self, start: int) -> tuple[bytes | None, int]:
        if start + _INT.size > len(self.data):
            raise DumpError("a message ends before its key and value")
        (length,) = _INT.unpack_from(self.data, start)
        start += _INT.size
        if length < 0:
            return None, start
        if start + length > len(self.data):
            raise DumpError(f"a field of {length} bytes is longer than what is left of its message")
        return bytes(self.data[start : start + length]), start + length


def _with_right_lz4_header(frame: bytes) -> bytes:
    """Clients of format v0 wrote a wrong checksum into the frame's header, so the right one is put there."""
    end = _LZ4_HEADER_END + (_LONG.size if frame[4:5] and frame[4] & _LZ4_CONTENT_SIZE_FLAG else 0)
    checksum = xxh32_short(frame[4:end]) >> 8 & 0xFF
    return frame[:end] + bytes([checksum]) + frame[end + 1 :]


def _entries(data: memoryview) -> Iterator[LegacyBatch]:
    position = 0
    while position + _OVERHEAD <= len(data):
        _, length = _ENTRY_HEAD.unpack_from(data, position)
        end = position + _OVERHEAD + length
        if length < _RECORD_HEAD.size + 2 * _INT.size or end > len(data):
            raise DumpError(f"a message inside of a compressed one claims {length} bytes")
        yield LegacyBatch(data[position:end])
        position = end
