"""Snappy in the framing of snappy-java, which Kafka's clients use: a header, then length-prefixed blocks.

A stream without that header is taken as one bare snappy block, as snappy-java does.
"""

from struct import Struct
from typing import Final

import cramjam

from headrace.ports import BytesLike
from headrace.records.errors import DecompressedTooLarge, UndecompressableRecords

BLOCK_SIZE: Final = 32 * 1024
MAGIC: Final = b"\x82SNAPPY\x00"
VERSION: Final = 1
HEADER: Final = MAGIC + Struct(">ii").pack(VERSION, VERSION)

_LENGTH: Final = Struct(">i")
_MAGIC_AS_LENGTH: Final = _LENGTH.unpack(MAGIC[:4])[0]


def compress_xerial(data: BytesLike) -> bytes:
    """`data` cut into 32 KiB blocks, each compressed on its own."""
    parts: list[BytesLike] = [HEADER]
    view = memoryview(data)
    for start in range(0, len(view), BLOCK_SIZE):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + BLOCK_SIZE]))
        parts.append(_LENGTH.pack(len(block)))
        parts.append(block)
    return b"".join(parts)


def decompress_xerial(data: BytesLike, limit: int) -> bytearray:
    """The content of a snappy-java stream or of a bare snappy block."""
    view = memoryview(data)
    if not len(view):
        raise UndecompressableRecords("Cannot decompress empty stream")
    out = bytearray()
    if len(view) < len(HEADER) or bytes(view[: len(MAGIC)]) != MAGIC:
        _append_block(out, view, limit)
        return out
    position = len(HEADER)
    while position + _LENGTH.size <= len(view):
        (length,) = _LENGTH.unpack_from(view, position)
        if length == _MAGIC_AS_LENGTH:
            if not _another_stream_starts(view, position):
                break
            position += len(HEADER)
            continue
        position += _LENGTH.size
        if length < 0 or position + length > len(view):
            raise UndecompressableRecords(f"Snappy block of {length} bytes does not fit its stream")
        _append_block(out, view[position : position + length], limit)
        position += length
    return out


def _another_stream_starts(view: memoryview, position: int) -> bool:
    """Whether the header of a second stream is at `position`; something else there ends the first."""
    header = view[position : position + len(HEADER)]
    if len(header) < len(HEADER):
        raise UndecompressableRecords("Snappy stream header is cut short")
    if bytes(header[: len(MAGIC)]) != MAGIC:
        return False
    (version,) = _LENGTH.unpack_from(header, len(MAGIC))
    if version < VERSION:
        raise UndecompressableRecords(f"Snappy stream has incompatible version {version}")
    return True


def _append_block(out: bytearray, block: memoryview, limit: int) -> None:
    start = len(out)
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if start + size > limit:
            raise DecompressedTooLarge(limit)
        out += bytes(size)
        with memoryview(out) as target:
            cramjam.snappy.decompress_raw_into(block, target[start:])
    except cramjam.DecompressionError as failure:
        raise UndecompressableRecords(f"Failed to decompress record stream: {failure}") from None
