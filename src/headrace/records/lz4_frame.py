"""LZ4 frames as Kafka's Java client writes and reads them.

It writes independent 64 KiB blocks without block or content checksums, and reads one frame of independent
blocks; what follows the frame's end mark, and a content checksum, it does not look at.
"""

from struct import Struct
from typing import Final

import cramjam

from headrace.ports import BytesLike
from headrace.records.errors import DecompressedTooLarge, UndecompressableRecords
from headrace.records.xxhash import xxh32_short

MAGIC: Final = b"\x04\x22\x4d\x18"
BLOCK_SIZE: Final = 64 * 1024
LEVEL_FAST: Final = 9

_DESCRIPTOR: Final = b"\x60\x40"
_HEADER: Final = MAGIC + _DESCRIPTOR + bytes([xxh32_short(_DESCRIPTOR) >> 8 & 0xFF])
_END_MARK: Final = bytes(4)
_BLOCK_LENGTH: Final = Struct("<I")
_STORED_FLAG: Final = 0x80000000
_CHECKSUM_SIZE: Final = 4
# No byte of an LZ4 block can stand for more than this many.
_RATIO_MAX: Final = 256

_VERSION_MASK: Final = 0xC0
_VERSION_1: Final = 0x40
_INDEPENDENT_FLAG: Final = 0x20
_BLOCK_CHECKSUM_FLAG: Final = 0x10
_CONTENT_SIZE_FLAG: Final = 0x08
_CONTENT_CHECKSUM_FLAG: Final = 0x04
_RESERVED_FLAGS: Final = 0x03


def compress_lz4(data: BytesLike, level: int = LEVEL_FAST) -> bytes:
    """`data` as one frame. Level 9 means the fast compressor, as in Kafka; others the thorough one."""
    parts: list[BytesLike] = [_HEADER]
    view = memoryview(data)
    for start in range(0, len(view), BLOCK_SIZE):
        block = view[start : start + BLOCK_SIZE]
        packed = _compress_block(block, level)
        if len(packed) >= len(block):
            parts += (_BLOCK_LENGTH.pack(len(block) | _STORED_FLAG), block)
        else:
            parts += (_BLOCK_LENGTH.pack(len(packed)), packed)
    parts.append(_END_MARK)
    return b"".join(parts)


def _compress_block(block: memoryview, level: int) -> bytes:
    if level == LEVEL_FAST:
        return bytes(cramjam.lz4.compress_block(block, store_size=False))
    return bytes(
        cramjam.lz4.compress_block(block, mode="high_compression", compression=level, store_size=False)
    )


def decompress_lz4(data: BytesLike, limit: int) -> bytearray:
    """The content of the first frame in `data`."""
    view = memoryview(data)
    flags, block_max, position = _read_header(view)
    out = bytearray()
    while True:
        if position + _BLOCK_LENGTH.size > len(view):
            raise UndecompressableRecords("LZ4 stream ended prematurely")
        (field,) = _BLOCK_LENGTH.unpack_from(view, position)
        position += _BLOCK_LENGTH.size
        length = field & ~_STORED_FLAG
        if length == 0:
            _require_content_checksum(flags, position, len(view))
            return out
        if length > block_max:
            raise UndecompressableRecords(f"LZ4 block size {length} exceeded max: {block_max}")
        block = view[position : position + length]
        position += length
        if flags & _BLOCK_CHECKSUM_FLAG:
            position += _CHECKSUM_SIZE
        if position > len(view):
            raise UndecompressableRecords("LZ4 stream ended prematurely")
        if flags & _BLOCK_CHECKSUM_FLAG:
            _verify_block(view[position - length - 8 : position])
        _append_block(out, block, block_max, limit, stored=field & _STORED_FLAG != 0)


def _require_content_checksum(flags: int, position: int, end: int) -> None:
    if flags & _CONTENT_CHECKSUM_FLAG and position + _CHECKSUM_SIZE > end:
        raise UndecompressableRecords("LZ4 stream ended prematurely")


def _read_header(view: memoryview) -> tuple[int, int, int]:
    """The frame's flags, its largest block and where the blocks start."""
    if bytes(view[: len(_HEADER)]) == _HEADER:
        return _HEADER[4], BLOCK_SIZE, len(_HEADER)
    if len(view) < len(_HEADER) - 1:
        raise UndecompressableRecords("LZ4 stream ended prematurely")
    if bytes(view[:4]) != MAGIC:
        raise UndecompressableRecords("LZ4 stream unsupported (invalid magic bytes)")
    flags, block_descriptor = view[4], view[5]
    if flags & _RESERVED_FLAGS or flags & _VERSION_MASK != _VERSION_1 or not flags & _INDEPENDENT_FLAG:
        raise UndecompressableRecords(f"LZ4 stream has unsupported flags 0x{flags:02x}")
    size_code = block_descriptor >> 4
    if block_descriptor & 0x0F or not 4 <= size_code <= 7:
        raise UndecompressableRecords(f"LZ4 stream has unsupported block descriptor 0x{block_descriptor:02x}")
    end = 14 if flags & _CONTENT_SIZE_FLAG else 6
    if len(view) <= end:
        raise UndecompressableRecords("LZ4 stream ended prematurely")
    if view[end] != xxh32_short(bytes(view[4:end])) >> 8 & 0xFF:
        raise UndecompressableRecords("LZ4 stream frame descriptor corrupted")
    return flags, 1 << (2 * size_code + 8), end + 1


def _append_block(out: bytearray, block: memoryview, block_max: int, limit: int, *, stored: bool) -> None:
    start = len(out)
    if stored:
        out += block
    else:
        room = min(block_max, len(block) * _RATIO_MAX)
        out += bytes(room)
        try:
            with memoryview(out) as target:
                size = cramjam.lz4.decompress_block_into(block, target[start:], output_len=room)
        except cramjam.DecompressionError as failure:
            raise UndecompressableRecords(f"Failed to decompress record stream: {failure}") from None
        del out[start + size :]
    if len(out) > limit:
        raise DecompressedTooLarge(limit)


def _verify_block(framed: memoryview) -> None:
    """Check a block with its length and checksum by letting the codec read it as a frame of its own."""
    descriptor = bytes([_VERSION_1 | _INDEPENDENT_FLAG | _BLOCK_CHECKSUM_FLAG, 0x70])
    header = MAGIC + descriptor + bytes([xxh32_short(descriptor) >> 8 & 0xFF])
    try:
        cramjam.lz4.decompress(b"".join((header, framed, _END_MARK)))
    except cramjam.DecompressionError as failure:
        raise UndecompressableRecords(f"LZ4 block checksum mismatch: {failure}") from None
