"""Codecs: framing as the Java client writes it, tolerance as the Java reader has it, bounds for bombs."""

import tracemalloc
import zlib
from contextlib import suppress

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import ErrorCode
from headrace.records.compression import Compression, compress, decompress
from headrace.records.errors import DecompressedTooLarge, UndecompressableRecords
from headrace.records.xxhash import xxh32_short

CODECS = [codec for codec in Compression if codec is not Compression.NONE]
TEXT = b"".join(b"%d bottles of beer on the wall, " % n for n in range(4000))
XERIAL_HEADER = b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
LZ4_HEADER = b"\x04\x22\x4d\x18\x60\x40\x82"


@settings(max_examples=60)
@given(st.sampled_from(Compression), st.binary(max_size=2000), st.integers(1, 120))
def test_bytes_survive_every_codec(codec: Compression, data: bytes, times: int) -> None:
    assert decompress(codec, compress(codec, data * times)) == data * times


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview])
def test_any_kind_of_buffer_is_taken(codec: Compression, wrap: type) -> None:
    packed = compress(codec, wrap(TEXT))
    assert decompress(codec, wrap(packed)) == TEXT


@pytest.mark.parametrize(
    ("codec", "levels"),
    [
        (Compression.GZIP, (-1, 1, 9)),
        (Compression.LZ4, (1, 9, 17)),
        (Compression.ZSTD, (-131072, 1, 3, 22)),
        (Compression.SNAPPY, (None,)),
    ],
)
def test_every_level_that_kafka_allows_works(codec: Compression, levels: tuple[int | None, ...]) -> None:
    for level in levels:
        assert decompress(codec, compress(codec, TEXT[:3000], level)) == TEXT[:3000]


def test_snappy_is_framed_in_blocks_of_32_kib() -> None:
    packed = bytes(compress(Compression.SNAPPY, TEXT))
    assert packed.startswith(XERIAL_HEADER)
    position, sizes = len(XERIAL_HEADER), []
    while position < len(packed):
        length = int.from_bytes(packed[position : position + 4], "big")
        block = packed[position + 4 : position + 4 + length]
        sizes.append(cramjam.snappy.decompress_raw_len(block))
        position += 4 + length
    assert sizes[:-1] == [32 * 1024] * (len(TEXT) // (32 * 1024))
    assert sum(sizes) == len(TEXT)


def test_a_bare_snappy_block_is_read() -> None:
    assert decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT))) == TEXT


def test_lz4_is_one_frame_of_independent_64_kib_blocks_without_checksums() -> None:
    packed = bytes(compress(Compression.LZ4, TEXT))
    assert packed.startswith(LZ4_HEADER)
    position, blocks = len(LZ4_HEADER), 0
    while length := int.from_bytes(packed[position : position + 4], "little") & 0x7FFFFFFF:
        position += 4 + length
        blocks += 1
    assert position + 4 == len(packed)
    assert blocks == -(-len(TEXT) // (64 * 1024))


def test_lz4_stores_blocks_that_do_not_shrink() -> None:
    noise = bytes(zlib.crc32(bytes([n])) & 0xFF for n in range(256))
    packed = bytes(compress(Compression.LZ4, noise))
    assert packed == LZ4_HEADER + (256 | 0x80000000).to_bytes(4, "little") + noise + bytes(4)


def test_lz4_block_checksums_are_verified() -> None:
    compressor = cramjam.lz4.Compressor(content_checksum=False, block_linked=False)
    compressor.compress(TEXT)
    packed = bytearray(bytes(compressor.finish()))
    assert packed[4] & 0x10
    assert decompress(Compression.LZ4, packed) == TEXT
    packed[-5] ^= 1
    with pytest.raises(UndecompressableRecords):
        decompress(Compression.LZ4, packed)


def test_a_gzip_header_carries_neither_name_nor_time() -> None:
    assert bytes(compress(Compression.GZIP, TEXT))[:8] == b"\x1f\x8b\x08\x00\x00\x00\x00\x00"


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.SNAPPY, Compression.ZSTD])
def test_streams_in_a_row_are_read_as_one(codec: Compression) -> None:
    both = bytes(compress(codec, TEXT[:500])) + bytes(compress(codec, TEXT[500:]))
    assert decompress(codec, both) == TEXT


def test_only_the_first_of_two_lz4_frames_is_read() -> None:
    both = bytes(compress(Compression.LZ4, TEXT[:500])) + bytes(compress(Compression.LZ4, TEXT[500:]))
    assert decompress(Compression.LZ4, both) == TEXT[:500]


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.LZ4])
@pytest.mark.parametrize("behind", [b"x", b"xyzw" * 8, bytes(16)])
def test_what_java_leaves_unread_behind_a_stream_does_not_matter(codec: Compression, behind: bytes) -> None:
    assert decompress(codec, bytes(compress(codec, TEXT)) + behind) == TEXT


def test_a_second_snappy_header_of_another_kind_ends_the_stream() -> None:
    packed = bytes(compress(Compression.SNAPPY, TEXT))
    assert decompress(Compression.SNAPPY, packed + b"\x82SNAX" + bytes(11)) == TEXT
    with pytest.raises(UndecompressableRecords, match="version 0"):
        decompress(Compression.SNAPPY, packed + b"\x82SNAPPY\x00" + bytes(8))
    with pytest.raises(UndecompressableRecords, match="cut short"):
        decompress(Compression.SNAPPY, packed + b"\x82SNAPPY")


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("cut", [1, 3, 9, 500])
def test_a_stream_cut_short_is_refused(codec: Compression, cut: int) -> None:
    packed = bytes(compress(codec, TEXT))
    with pytest.raises(UndecompressableRecords) as refusal:
        decompress(codec, packed[:-cut])
    assert refusal.value.code == ErrorCode.UNKNOWN_SERVER_ERROR


@settings(max_examples=150)
@given(st.sampled_from(CODECS), st.binary(max_size=200), st.data())
def test_damage_raises_nothing_but_the_typed_errors(
    codec: Compression, noise: bytes, data: st.DataObject
) -> None:
    packed = bytearray(compress(codec, TEXT[:5000]))
    at = data.draw(st.integers(0, len(packed)))
    packed[at : at + len(noise)] = noise
    with suppress(UndecompressableRecords, DecompressedTooLarge):
        assert len(decompress(codec, bytes(packed), 1 << 20)) <= 1 << 20


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_is_refused_without_much_memory(codec: Compression) -> None:
    bomb = bytes(compress(codec, bytes(64 << 20)))
    limit = 1 << 20
    tracemalloc.start()
    try:
        with pytest.raises(DecompressedTooLarge, match="1048576"):
            decompress(codec, bomb, limit)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * limit + 2 * len(bomb)


def test_a_snappy_block_that_claims_gigabytes_is_refused_before_anything_is_allocated() -> None:
    claims = b"\xff\xff\xff\xff\x0f" + b"abc"
    tracemalloc.start()
    try:
        with pytest.raises(DecompressedTooLarge):
            decompress(Compression.SNAPPY, claims)
        assert tracemalloc.get_traced_memory()[1] < 1 << 16
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("codec", CODECS)
def test_output_of_exactly_the_limit_is_fine(codec: Compression) -> None:
    packed = compress(codec, bytes(100_000))
    assert decompress(codec, packed, 100_000) == bytes(100_000)
    with pytest.raises(DecompressedTooLarge):
        decompress(codec, packed, 99_999)


@pytest.mark.parametrize(
    ("data", "value"),
    [(b"", 0x02CC5D05), (b"a", 0x550D7456), (b"abc", 0x32D153FF), (b"Hello, world!", 0x31B7405D)],
)
def test_xxh32_gives_the_published_values(data: bytes, value: int) -> None:
    assert xxh32_short(data) == value


def test_xxh32_declines_long_input() -> None:
    with pytest.raises(ValueError, match="fewer than 16"):
        xxh32_short(bytes(16))
