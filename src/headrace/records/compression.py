"""The five codecs of record batches, framed as Kafka's Java client frames them.

Decompression is bounded: nothing inflates beyond the limit it is called with, whatever the input claims.
"""

from enum import IntEnum
from typing import Final

import cramjam

from headrace.ports import BytesLike
from headrace.records.inflate import decompress_gzip, decompress_zstd
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
    if codec == Compression.GZIP:
        return decompress_gzip(data, limit)
    return decompress_zstd(data, limit)
