"""The five codecs of record batches, framed as Kafka's Java client frames them.

Decompression is bounded: nothing inflates beyond the limit it is called with, whatever the input claims.
"""

from enum import IntEnum
from typing import Any, Final

import cramjam

from headrace.ports import BytesLike
from headrace.records.errors import DecompressedTooLarge, UndecompressableRecords
from headrace.records.lz4_frame import compress_lz4, decompress_lz4
from headrace.records.xerial import compress_xerial, decompress_xerial

DECOMPRESSED_MAX: Final = 128 * 1024 * 1024


class Compression(IntEnum):
    """A batch's codec, by its value in the attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


LEVEL_DEFAULT: Final = {Compression.GZIP: -1, Compression.LZ4: 9, Compression.ZSTD: 3}

_FIRST_GUESS_MIN: Final = 64 * 1024
_FIRST_GUESS_RATIO: Final = 8
_GROWTH: Final = 8
_GZIP_LEVEL_OF_DEFAULT: Final = 6


def compress(codec: Compression, data: BytesLike, level: int | None = None) -> BytesLike:
    """`data` in the codec's framing; `level` is Kafka's, and its default where it is None."""
    if codec == Compression.NONE:
        return data
    if codec == Compression.SNAPPY:
        return compress_xerial(data)
    chosen = LEVEL_DEFAULT[codec] if level is None else level
    if codec == Compression.LZ4:
        return compress_lz4(data, chosen)
    if codec == Compression.ZSTD:
        return bytes(cramjam.zstd.compress(data, level=chosen))
    return bytes(cramjam.gzip.compress(data, level=_GZIP_LEVEL_OF_DEFAULT if chosen < 0 else chosen))


def decompress(codec: Compression, data: BytesLike, limit: int = DECOMPRESSED_MAX) -> BytesLike:
    """What `data` holds, at most `limit` bytes of it."""
    if codec == Compression.NONE:
        return data
    if codec == Compression.SNAPPY:
        return decompress_xerial(data, limit)
    if codec == Compression.LZ4:
        return decompress_lz4(data, limit)
    return _inflate(cramjam.gzip if codec == Compression.GZIP else cramjam.zstd, data, limit)


def _inflate(module: Any, data: BytesLike, limit: int) -> bytearray:
    """Decompress into a buffer that grows until the output fits or the limit is reached."""
    room = min(limit, max(_FIRST_GUESS_MIN, len(data) * _FIRST_GUESS_RATIO))
    while True:
        out = bytearray(room)
        try:
            size = module.decompress_into(data, out)
        except cramjam.DecompressionError as failure:
            if "write whole buffer" not in str(failure):
                raise UndecompressableRecords(f"Failed to decompress record stream: {failure}") from None
            if room == limit:
                raise DecompressedTooLarge(limit) from None
            room = min(limit, room * _GROWTH)
            continue
        del out[size:]
        return out
