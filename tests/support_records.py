"""Hand-made batches, good and bad, for the tests of `headrace.records` and their comparison with Kafka."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from struct import Struct
from typing import Any

from crc32c import crc32c

from headrace.records.compression import Compression, compress
from headrace.records.rules import INT64_MAX, Origin, ValidationRules
from headrace.records.varint import encode_varint
from headrace.records.xxhash import xxh32_short
from headrace.types import TopicPartition

NOW = 1_700_000_000_000
HEADER = Struct(">qiibIhiqqqhii")
OVERLONG_VARINT = b"\xff\xff\xff\xff\xff\x01"
OVERLONG_VARLONG = b"\xff" * 10 + b"\x01"


@dataclass(slots=True)
class RawBatch:
    """A batch whose every field can be set wrong; None means what is right."""

    records: list[bytes] = field(default_factory=list)
    base_offset: int = 0
    size: int | None = None
    leader_epoch: int = -1
    magic: int = 2
    crc: int | None = None
    attributes: int = 0
    last_offset_delta: int | None = None
    base_timestamp: int = NOW
    max_timestamp: int = NOW
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    count: int | None = None
    payload: bytes | None = None

    def encode(self) -> bytes:
        """The batch's bytes, compressed as its attributes say unless a payload is given."""
        payload = self.payload
        if payload is None:
            codec = self.attributes & 7
            joined = b"".join(self.records)
            payload = bytes(compress(Compression(codec), joined)) if codec <= 4 else joined
        count = len(self.records) if self.count is None else self.count
        header = bytearray(
            HEADER.pack(
                self.base_offset,
                49 + len(payload) if self.size is None else self.size,
                self.leader_epoch,
                self.magic,
                0,
                self.attributes,
                len(self.records) - 1 if self.last_offset_delta is None else self.last_offset_delta,
                self.base_timestamp,
                self.max_timestamp,
                self.producer_id,
                self.producer_epoch,
                self.base_sequence,
                count,
            )
        )
        crc = crc32c(bytes(header[21:]) + payload) if self.crc is None else self.crc
        header[17:21] = crc.to_bytes(4, "big")
        return bytes(header) + payload


def record(
    delta: int = 0,
    *,
    timestamp_delta: int = 0,
    key: bytes | None = b"key",
    value: bytes | None = b"value",
    headers: tuple[tuple[bytes, bytes | None], ...] = (),
    attributes: int = 0,
    length: int | None = None,
) -> bytes:
    """One record; `length` overrides the length it claims."""
    body = bytes([attributes]) + encode_varint(timestamp_delta) + encode_varint(delta)
    body += sized(key) + sized(value) + encode_varint(len(headers))
    for name, content in headers:
        body += sized(name) + sized(content)
    return framed(body, length)


def framed(body: bytes, length: int | None = None) -> bytes:
    """A record body behind its length, or behind another one."""
    return encode_varint(len(body) if length is None else length) + body


def sized(content: bytes | None) -> bytes:
    """A field behind its length."""
    return encode_varint(-1) if content is None else encode_varint(len(content)) + content


def good(how_many: int = 3, **overrides: Any) -> RawBatch:
    """A sound batch of small records."""
    return replace(RawBatch([record(i) for i in range(how_many)]), **overrides)


@dataclass(slots=True, frozen=True)
class Refusal:
    """A batch that must be refused, and with which code. `settings` are topic settings by Kafka's key.

    The code is that of 4.3.1 unless `stricter`: then Kafka would store the batch or fail in another way.
    """

    name: str
    make: Callable[[], bytes]
    code: int
    settings: str = "-"
    produce_version: int = 12
    origin: str = "CLIENT"
    record_errors: tuple[int, ...] = ()
    stricter: bool = False


def _body(*parts: bytes) -> bytes:
    return framed(b"".join(parts))


_KEY = sized(b"key")
_VALUE = sized(b"value")
# Kafka does not look at the lengths of records in compressed batches, Headrace does.
_UNSEEN_WHEN_COMPRESSED = {
    "record length beyond the batch",
    "record length one too small",
    "record length one too large",
    "negative record length",
}


def bad_records(delta: int) -> dict[str, bytes]:
    """Records that do not parse, each in one respect; `delta` is their offset delta."""
    head = b"\x00\x00" + encode_varint(delta)
    sound = head + _KEY + _VALUE + b"\x00"
    before_headers = head + _KEY + _VALUE
    one_header = before_headers + encode_varint(1)
    return {
        "record length beyond the batch": framed(sound, 500),
        "record length one too small": framed(sound, len(sound) - 1),
        "record length one too large": framed(sound, len(sound) + 1),
        "negative record length": framed(sound, -3),
        "record of length zero": framed(b""),
        "record of attributes only": framed(b"\x00"),
        "timestamp delta cut short": b"\x04\x00\x80",
        "overlong timestamp delta": _body(b"\x00", OVERLONG_VARLONG, head[2:], _KEY, _VALUE, b"\x00"),
        "overlong offset delta": _body(b"\x00\x00", OVERLONG_VARINT, _KEY, _VALUE, b"\x00"),
        "overlong key length": _body(head, OVERLONG_VARINT, _VALUE, b"\x00"),
        "overlong value length": _body(head, _KEY, OVERLONG_VARINT, b"\x00"),
        "overlong header count": _body(before_headers, OVERLONG_VARINT),
        "key beyond the record": _body(head, encode_varint(100), b"key", _VALUE, b"\x00"),
        "key as long as an int allows": _body(head, encode_varint(2**31 - 1), b"key", _VALUE, b"\x00"),
        "value beyond the record": _body(head, _KEY, encode_varint(100), b"value", b"\x00"),
        "value one byte too long": _body(head, _KEY, encode_varint(6), b"value"),
        "no value": _body(head, _KEY),
        "no header count": _body(before_headers),
        "negative header count": _body(before_headers, encode_varint(-1)),
        "more headers than bytes": _body(before_headers, encode_varint(1000)),
        "header count one too large": _body(before_headers, encode_varint(2), sized(b"h"), sized(b"v")),
        "header count one too small": _body(one_header, sized(b"h"), sized(b"v"), sized(b"i"), sized(b"w")),
        "null header name": _body(one_header, sized(None), sized(b"v")),
        "header name beyond the record": _body(one_header, encode_varint(90), b"h"),
        "header value beyond the record": _body(one_header, sized(b"h"), encode_varint(90), b"v"),
        "overlong header name length": _body(one_header, OVERLONG_VARINT, sized(b"v")),
        "overlong header value length": _body(one_header, sized(b"h"), OVERLONG_VARINT),
        "bytes after the headers": _body(before_headers, b"\x00", b"xyz"),
    }


def record_structure_refusals() -> list[Refusal]:
    """A bad record alone, in first and in last place, plain and compressed."""
    cases = []
    for name in bad_records(0):
        first, second = bad_records(0)[name], bad_records(1)[name]
        places = {"alone": [first], "first": [first, record(1)], "last": [record(0), second]}
        for place, records in places.items():
            for codec in (Compression.NONE, Compression.GZIP, Compression.LZ4):
                raw = RawBatch(records, attributes=codec)
                stricter = codec != Compression.NONE and name in _UNSEEN_WHEN_COMPRESSED
                label = f"{name}, {place}, {codec.name.lower()}"
                cases.append(Refusal(label, raw.encode, 87, stricter=stricter))
    return cases


def offset_refusals() -> list[Refusal]:
    """Offset deltas that do not count from 0; Kafka would store the plain ones."""
    wrong = {
        "offset deltas from 1": [record(1), record(2)],
        "an offset delta left out": [record(0), record(2)],
        "an offset delta twice": [record(0), record(0)],
        "offset deltas in reverse": [record(1), record(0)],
        "negative offset delta": [record(-1), record(1)],
    }
    cases = []
    for name, records in wrong.items():
        plain = RawBatch(records)
        cases.append(Refusal(f"{name}, none", plain.encode, 87, stricter=True))
        cases.append(Refusal(f"{name}, zstd", replace(plain, attributes=4).encode, -1))
    return cases


def _with_payload(codec: Compression, payload: bytes) -> bytes:
    return good(50, attributes=codec, payload=payload).encode()


def _compressed(codec: Compression) -> bytes:
    return bytes(compress(codec, b"".join(good(50).records)))


def header_refusals() -> list[Refusal]:
    """Headers, counts, offsets, producer fields and sizes that contradict each other or the rules."""
    return [
        Refusal("no bytes at all", lambda: b"", 87),
        Refusal("fewer bytes than a header", lambda: good().encode()[:40], 87),
        Refusal("size beyond the data", lambda: good(size=10_000).encode(), 87),
        Refusal("size below any format's minimum", lambda: good(size=13).encode(), 2),
        Refusal("negative size", lambda: good(size=-1).encode(), 2),
        Refusal("size below the header's", lambda: good(size=40).encode()[:52], 2),
        Refusal("format v0", lambda: good(magic=0).encode(), 87),
        Refusal("format v1", lambda: good(magic=1).encode(), 87),
        Refusal("format v3", lambda: good(magic=3).encode(), 2),
        Refusal("negative format", lambda: good(magic=-1).encode(), 2),
        Refusal("two batches", lambda: good().encode() * 2, 87),
        Refusal("a batch and a corrupt second header", lambda: good().encode() + bytes(20), 2),
        Refusal("wrong checksum", lambda: good(crc=12345).encode(), 2),
        Refusal("unknown codec 5", lambda: good(attributes=5).encode(), -1),
        Refusal("unknown codec 7", lambda: good(attributes=7).encode(), -1),
        Refusal("zstd before produce v7", lambda: good(attributes=4).encode(), 76, produce_version=6),
        Refusal("base offset not zero", lambda: good(base_offset=1).encode(), 87),
        Refusal("negative base offset", lambda: good(base_offset=-1).encode(), 87),
        Refusal("negative last offset delta", lambda: good(last_offset_delta=-1).encode(), 87),
        Refusal("last offset delta too small", lambda: good(last_offset_delta=1).encode(), 87),
        Refusal("last offset delta too large", lambda: good(last_offset_delta=3).encode(), 87),
        Refusal("count zero", lambda: good(count=0).encode(), 87),
        Refusal("negative count", lambda: good(count=-1).encode(), 87),
        Refusal("count zero and no records", lambda: RawBatch(last_offset_delta=0).encode(), 87),
        Refusal(
            "more records counted than there are", lambda: good(count=4, last_offset_delta=3).encode(), 87
        ),
        Refusal(
            "fewer records counted than there are", lambda: good(count=2, last_offset_delta=1).encode(), 87
        ),
        Refusal(
            "bytes after the last record", lambda: good(payload=b"".join(good().records) + b"\0").encode(), 87
        ),
        Refusal("control batch from a client", lambda: good(attributes=0x20).encode(), 87),
        Refusal("producer id without sequence", lambda: good(producer_id=5, producer_epoch=0).encode(), 87),
        Refusal(
            "negative sequence",
            lambda: good(producer_id=5, producer_epoch=0, base_sequence=-2).encode(),
            87,
        ),
        Refusal(
            "batch above max.message.bytes", lambda: good().encode(), 10, settings="max.message.bytes=60"
        ),
        Refusal("length prefix that does not end", lambda: RawBatch([OVERLONG_VARINT]).encode(), -1),
    ]


def payload_refusals() -> list[Refusal]:
    """Payloads that do not decompress, or to something else than the header says."""
    gzip, snappy, lz4, zstd = Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD
    cases = [Refusal(f"plain records marked {c.name.lower()}", _marked(c), -1) for c in (gzip, lz4, zstd)]
    cases += [Refusal(f"empty {c.name.lower()} payload", _payload(c, b""), -1) for c in (gzip, snappy, lz4)]
    cases.append(Refusal("empty zstd payload", _payload(zstd, b""), 87))
    for codec in (gzip, snappy, lz4, zstd):
        whole, name = _compressed(codec), codec.name.lower()
        cases.append(Refusal(f"{name} payload cut in half", _payload(codec, whole[: len(whole) // 2]), -1))
        cases.append(Refusal(f"{name} payload cut by a byte", _payload(codec, whole[:-1]), -1))
    for codec in (gzip, snappy, zstd):
        twice, name = _compressed(codec) * 2, codec.name.lower()
        cases.append(Refusal(f"{name} payload twice", _payload(codec, twice), 87))
    cases += [
        Refusal("gzip with a wrong checksum", _payload(gzip, _compressed(gzip)[:-8] + bytes(8)), -1),
        Refusal("snappy block of negative length", _payload(snappy, _compressed(snappy) + b"\xff" * 4), -1),
        Refusal("lz4 with dependent blocks", _payload(lz4, _lz4_flags(0x40)), -1),
        Refusal("lz4 with reserved flags", _payload(lz4, _lz4_flags(0x61)), -1),
        Refusal("lz4 with a wrong header checksum", _payload(lz4, _compressed(lz4)[:6] + b"\x00"), -1),
        Refusal("zstd with something behind it", _payload(zstd, _compressed(zstd) + b"xyzw"), -1),
    ]
    return cases


def _lz4_flags(flags: int) -> bytes:
    """A frame with other flags and the header checksum that goes with them."""
    descriptor = bytes([flags, 0x40])
    checksum = bytes([xxh32_short(descriptor) >> 8 & 0xFF])
    return b"\x04\x22\x4d\x18" + descriptor + checksum + _compressed(Compression.LZ4)[7:]


def _marked(codec: Compression) -> Callable[[], bytes]:
    return lambda: _with_payload(codec, b"".join(good().records))


def _payload(codec: Compression, payload: bytes) -> Callable[[], bytes]:
    return lambda: _with_payload(codec, payload)


def record_refusals() -> list[Refusal]:
    """Records that parse but break the topic's rules, each named by its index."""
    keyless = RawBatch([record(0), record(1, key=None), record(2, key=None)])
    far = 10**10
    cases = []
    for codec in (Compression.NONE, Compression.SNAPPY):
        suffix = f", {codec.name.lower()}"
        cases += [
            Refusal(
                "no key on a compacted topic" + suffix,
                replace(keyless, attributes=codec).encode,
                87,
                settings="cleanup.policy=compact",
                record_errors=(1, 2),
            ),
            Refusal(
                "timestamp too far ahead" + suffix,
                RawBatch([record(0), record(1, timestamp_delta=far)], attributes=codec).encode,
                32,
                record_errors=(1,),
            ),
            Refusal(
                "timestamp too old" + suffix,
                RawBatch([record(0, timestamp_delta=-far), record(1)], attributes=codec).encode,
                32,
                settings="message.timestamp.before.max.ms=1000",
                record_errors=(0,),
            ),
            Refusal(
                "append-time batch on an append-time topic" + suffix,
                good(attributes=codec | 8).encode,
                32,
                settings="message.timestamp.type=LogAppendTime",
                record_errors=(0, 1, 2),
            ),
            Refusal(
                "append-time batch without a time" + suffix,
                good(attributes=codec | 8, max_timestamp=-1).encode,
                32,
                record_errors=(0, 1, 2),
            ),
            Refusal(
                "no key and a bad timestamp" + suffix,
                RawBatch([record(0, key=None), record(1, timestamp_delta=far)], attributes=codec).encode,
                32,
                settings="cleanup.policy=compact",
                record_errors=(0, 1),
            ),
        ]
    return cases


def all_refusals() -> list[Refusal]:
    """Every kind, in an order that does not change."""
    return [
        *header_refusals(),
        *payload_refusals(),
        *record_refusals(),
        *offset_refusals(),
        *record_structure_refusals(),
    ]


def rules_for(settings: str, origin: str = "CLIENT") -> ValidationRules:
    """The rules that topic settings, by Kafka's keys, amount to."""
    given = dict(pair.split("=") for pair in settings.split(",")) if settings != "-" else {}
    codec = given.get("compression.type", "producer")
    names = {"producer": None, "uncompressed": Compression.NONE}
    return ValidationRules(
        TopicPartition("topic", 0),
        compact="compact" in given.get("cleanup.policy", ""),
        timestamp_type=int(given.get("message.timestamp.type") == "LogAppendTime"),
        before_max_ms=int(given.get("message.timestamp.before.max.ms", INT64_MAX)),
        compression=names[codec] if codec in names else Compression[codec.upper()],
        max_message_bytes=int(given.get("max.message.bytes", 1_048_588)),
        origin=Origin[origin],
    )
