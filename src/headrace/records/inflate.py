"""Gzip and zstd streams, decompressed without letting their claims or their bombs allocate beyond a limit."""

import zlib
from collections.abc import Callable
from typing import Final

import cramjam

from headrace.ports import BytesLike
from headrace.records.errors import DecompressedTooLarge, UndecompressableRecords

_FIRST_GUESS_MIN: Final = 64 * 1024
_FIRST_GUESS_RATIO: Final = 8
_GROWTH: Final = 8
_OUTPUT_FULL: Final = "write whole buffer"

_GZIP_MAGIC: Final = b"\x1f\x8b\x08"
_GZIP_WINDOW: Final = 31
# What Java leaves unread behind a member because no other member could fit into it.
_GZIP_TAIL_MAX: Final = 18


def decompress_zstd(data: BytesLike, limit: int) -> bytearray:
    """All frames of a zstd stream; nothing is a stream without frames."""
    if not len(data):
        return bytearray()
    return _inflate(cramjam.zstd.decompress_into, data, limit)


def decompress_gzip(data: BytesLike, limit: int) -> bytearray:
    """All members of a gzip stream; what follows the last and is not a member is left unread, as in Java."""
    try:
        return _inflate(cramjam.gzip.decompress_into, data, limit)
    except UndecompressableRecords:
        return _gzip_members(bytes(data), limit)


def _inflate(into: Callable[[BytesLike, bytearray], int], data: BytesLike, limit: int) -> bytearray:
    """Decompress into a buffer that grows until the output fits or the limit is reached."""
    room = min(limit, max(_FIRST_GUESS_MIN, len(data) * _FIRST_GUESS_RATIO))
    while True:
        out = bytearray(room)
        try:
            size = into(data, out)
        except cramjam.DecompressionError as failure:
            if _OUTPUT_FULL not in str(failure):
                raise UndecompressableRecords(f"Failed to decompress record stream: {failure}") from None
            if room == limit:
                raise DecompressedTooLarge(limit) from None
            room = min(limit, room * _GROWTH)
            continue
        del out[size:]
        return out


def _gzip_members(data: bytes, limit: int) -> bytearray:
    """The slow way, member by member, for streams with something else behind them."""
    out = bytearray()
    first = True
    while first or (len(data) > _GZIP_TAIL_MAX and data.startswith(_GZIP_MAGIC)):
        first = False
        member = zlib.decompressobj(_GZIP_WINDOW)
        try:
            out += member.decompress(data, limit + 1 - len(out))
        except zlib.error as failure:
            raise UndecompressableRecords(f"Failed to decompress record stream: {failure}") from None
        if len(out) > limit:
            raise DecompressedTooLarge(limit)
        if not member.eof:
            raise UndecompressableRecords("Failed to decompress record stream: it ends within a gzip member")
        data = member.unused_data
    return out
