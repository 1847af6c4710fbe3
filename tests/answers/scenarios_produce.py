"""Produce: every version, every kind of batch that is refused, and sequences of idempotent producers."""

import struct
import time
import zlib

from headrace.protocol.messages.list_offsets import ListOffsetsRequest
from headrace.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.records.builder import NewRecord, build_batch
from headrace.records.compression import Compression, compress
from tests.answers.requests import (
    T0,
    UNKNOWN_ID,
    append,
    batch,
    concatenated,
    create_topic,
    fetch,
    fetch_topic,
    list_offsets,
    new_producer,
    produce,
    values,
    versions,
)
from tests.answers.session import Session

LATEST = ProduceRequest.VERSION_MAX
BY_NAME = 12
_CRC_FIELD = 17
_MAGIC_FIELD = 16


def every_version(session: Session) -> None:
    """An append and a refused one in each version, by name up to 12 and by id since 13."""
    topic_id = create_topic(session, "p-every")
    for version in versions(ProduceRequest):
        session.ask("append two records", produce("p-every", batch("a", "b"), topic_id=topic_id), version)
        unknown = produce("p-nowhere", batch("a"), topic_id=UNKNOWN_ID)
        session.ask("an unknown topic", unknown, version)
        missing = produce("p-every", batch("a"), topic_id=topic_id, partition=9)
        session.ask("an unknown partition", missing, version)
    for version in versions(ListOffsetsRequest, since=11):
        session.ask("only the good ones are there", list_offsets("p-every", {0: -1}), version)


def acknowledgements(session: Session) -> None:
    """acks of 1, 0, an impossible one, and an error with acks=0, which closes the connection."""
    create_topic(session, "p-acks")
    for version in (3, 8, BY_NAME):
        session.ask("acks=1", produce("p-acks", batch("a"), acks=1), version)
        session.ask("acks=2", produce("p-acks", batch("a"), acks=2), version)
        session.ask("acks=-2", produce("p-acks", batch("a"), acks=-2), version)
        session.ask_without_reply("acks=0", produce("p-acks", batch("a"), acks=0), version)
        wrong = produce("p-acks", batch("a"), acks=0, partition=7)
        session.ask_without_reply("acks=0 to an unknown partition", wrong, version)
    session.ask("what was appended", fetch(fetch_topic("p-acks", {0: 0})), 12)


def several_partitions(session: Session) -> None:
    """Each partition's result is its own."""
    first = create_topic(session, "p-several", 3)
    second = create_topic(session, "p-several-2")
    data = [
        PartitionProduceData(index=0, records=batch("a")),
        PartitionProduceData(index=5, records=batch("b")),
        PartitionProduceData(index=2, records=_with_wrong_crc(batch("c"))),
    ]
    request = ProduceRequest(
        acks=-1,
        timeout_ms=10_000,
        topic_data=[
            TopicProduceData(name="p-several", topic_id=first, partition_data=data),
            TopicProduceData(
                name="p-several-2",
                topic_id=second,
                partition_data=[PartitionProduceData(index=0, records=batch("d"))],
            ),
            TopicProduceData(
                name="p-nowhere",
                topic_id=UNKNOWN_ID,
                partition_data=[PartitionProduceData(index=0, records=batch("e"))],
            ),
        ],
    )
    for version in (3, 9, BY_NAME, LATEST):
        session.ask("good and bad together", request, version)
    session.ask("no topic at all", ProduceRequest(acks=-1, timeout_ms=1000), LATEST)
    nothing = ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name="p-several", topic_id=first)]
    )
    session.ask("a topic without partitions", nothing, BY_NAME)
    twice = ProduceRequest(
        acks=-1,
        timeout_ms=1000,
        topic_data=[
            TopicProduceData(
                name="p-several",
                topic_id=first,
                partition_data=[PartitionProduceData(index=1, records=batch(text)) for text in "xy"],
            )
        ],
    )
    session.ask("one partition twice", twice, BY_NAME)
    session.ask("the partition named twice", fetch(fetch_topic("p-several", {1: 0})), 12)


def damaged_batches(session: Session) -> None:
    """What is no batch, or not one batch, is refused whole."""
    create_topic(session, "p-damaged")
    whole = batch("a", "b", "c")
    cases = {
        "a wrong checksum": _with_wrong_crc(whole),
        "two batches": whole + batch("d"),
        "empty": b"",
        "a torn batch": whole[:-1],
        "a batch and a torn one": whole + whole[:30],
        "less than a header": whole[:40],
        "too short for a length": whole[:10],
        "an impossible length": whole[:8] + struct.pack(">i", 3) + whole[12:],
        "a negative length": whole[:8] + struct.pack(">i", -1) + whole[12:],
        "magic 3": whole[:_MAGIC_FIELD] + b"\x03" + whole[_MAGIC_FIELD + 1 :],
        "magic -1": whole[:_MAGIC_FIELD] + b"\xff" + whole[_MAGIC_FIELD + 1 :],
        "magic 0": _legacy_message(0),
        "magic 1": _legacy_message(1),
        "a control batch": batch("a", control=True),
        "a count above the records": _recounted(whole, 4),
        "a count below the records": _recounted(whole, 2),
        "a count of 0": _recounted(whole, 0),
        "a negative count": _recounted(whole, -1),
        "a last offset beyond the records": _with_last_offset_delta(whole, 5),
        "a negative last offset": _with_last_offset_delta(whole, -1),
        "no records in a batch": build_batch([]),
        "an offset of its own": batch("a", "b", base_offset=70),
        "an unknown codec": _with_attributes(whole, 5),
        "attributes nobody knows": _with_attributes(whole, 0x100),
        "gzip that is none": _with_attributes(whole, 1),
        "snappy that is none": _with_attributes(whole, 2),
        "lz4 that is none": _with_attributes(whole, 3),
        "zstd that is none": _with_attributes(whole, 4),
    }
    for about, data in cases.items():
        session.ask(about, produce("p-damaged", data), BY_NAME)
    for version in versions(ProduceRequest, until=7):
        session.ask("a wrong checksum", produce("p-damaged", _with_wrong_crc(whole)), version)
    session.ask("what was appended", fetch(fetch_topic("p-damaged", {0: 0})), 12)


def sizes(session: Session) -> None:
    """The topic's limit is on a batch as it is to be stored."""
    create_topic(session, "p-sizes", configs={"max.message.bytes": "300"})
    for version in (3, 7, 8, BY_NAME):
        session.ask("too large", produce("p-sizes", batch("x" * 400)), version)
    session.ask("just small enough", produce("p-sizes", batch("x" * 231)), BY_NAME)
    session.ask("just too large", produce("p-sizes", batch("x" * 232)), BY_NAME)
    small = batch("x" * 400, compression=Compression.GZIP)
    session.ask("small when compressed", produce("p-sizes", small), BY_NAME)
    session.ask("what was appended", fetch(fetch_topic("p-sizes", {0: 0})), 12)


def compacted_topics(session: Session) -> None:
    """Compaction needs keys: each record without one is named."""
    create_topic(session, "p-compact", configs={"cleanup.policy": "compact"})
    mixed = build_batch([*values("a", key="k"), *values("b"), *values("c", key="k"), *values("d")])
    for version in versions(ProduceRequest, until=BY_NAME):
        session.ask("records without keys", produce("p-compact", mixed), version)
    squeezed = build_batch(values("a", "b"), compression=Compression.LZ4)
    session.ask("compressed records without keys", produce("p-compact", squeezed), BY_NAME)
    session.ask("keys for all", produce("p-compact", build_batch(values("a", key="k"))), BY_NAME)
    tombstone = build_batch([NewRecord(T0, b"k", None)])
    session.ask("a tombstone", produce("p-compact", tombstone), BY_NAME)
    session.ask("what was appended", fetch(fetch_topic("p-compact", {0: 0})), 12)


def timestamps(session: Session) -> None:
    """Times too far from the broker's are refused, and LogAppendTime replaces them."""
    create_topic(
        session,
        "p-times",
        configs={"message.timestamp.before.max.ms": "100000", "message.timestamp.after.max.ms": "100000"},
    )
    now = time.time_ns() // 1_000_000
    cases = {"long ago": T0, "far ahead": now + 10_000_000, "now": now, "none": -1, "the year zero": 0}
    for about, timestamp in cases.items():
        data = build_batch(values("a", timestamp=timestamp))
        for version in (7, BY_NAME):
            session.ask(about, produce("p-times", data), version)
    create_topic(session, "p-append-time", configs={"message.timestamp.type": "LogAppendTime"})
    for version in versions(ProduceRequest, until=BY_NAME):
        session.ask("times of the broker's", produce("p-append-time", batch("a", "b")), version)
    squeezed = batch("a", "b", compression=Compression.GZIP)
    session.ask("times of the broker's, compressed", produce("p-append-time", squeezed), BY_NAME)
    session.ask("the broker's times", fetch(fetch_topic("p-append-time", {0: 0})), 12)
    create_topic(session, "p-declared-append-time")
    declared = batch("a", timestamp_type=1)
    session.ask("declared as the broker's time", produce("p-declared-append-time", declared), BY_NAME)


def codecs(session: Session) -> None:
    """Every codec in every version; old ones know no zstd. A topic's own codec replaces the producer's."""
    create_topic(session, "p-codecs")
    for version in versions(ProduceRequest, until=BY_NAME):
        for codec in Compression:
            data = batch("a" * 50, "b" * 50, compression=codec)
            session.ask(codec.name.lower(), produce("p-codecs", data), version)
    session.ask("as they came", fetch(fetch_topic("p-codecs", {0: 0})), 12)
    for kind in ("uncompressed", "gzip", "snappy", "lz4", "zstd"):
        topic = f"p-codec-{kind}"
        create_topic(session, topic, configs={"compression.type": kind})
        for codec in (Compression.NONE, Compression.SNAPPY):
            session.ask(codec.name.lower(), produce(topic, batch("a" * 50, compression=codec)), BY_NAME)
        session.ask(f"stored as {kind}", fetch(fetch_topic(topic, {0: 0})), 12)


def idempotent_sequences(session: Session) -> None:
    """A repeated batch is acknowledged once more, a gap and an old epoch are refused."""
    topic_id = create_topic(session, "p-sequences")
    producer = new_producer(session)

    def numbered(sequence: int, *texts: str, epoch: int = 0) -> ProduceRequest:
        data = batch(*texts, producer_id=producer, producer_epoch=epoch, base_sequence=sequence)
        return produce("p-sequences", data, topic_id=topic_id)

    for version in (3, 7, BY_NAME, LATEST):
        session.ask("begins", numbered(0, "a", "b", epoch=version), version)
        session.ask("goes on", numbered(2, "c", epoch=version), version)
        session.ask("repeats", numbered(2, "c", epoch=version), version)
        session.ask("repeats the one before", numbered(0, "a", "b", epoch=version), version)
        session.ask("repeats part of one", numbered(1, "b", epoch=version), version)
        session.ask("leaves a gap", numbered(7, "x", epoch=version), version)
        session.ask("an old epoch", numbered(3, "x", epoch=version - 1), version)
        session.ask("a new epoch amid a sequence", numbered(3, "x", epoch=version + 1), version)
    for at in range(7):
        session.ask("one of many", numbered(3 + at, "d", epoch=LATEST), LATEST)
    session.ask("repeats one of the last five", numbered(5, "d", epoch=LATEST), LATEST)
    session.ask("repeats one forgotten", numbered(3, "d", epoch=LATEST), LATEST)
    session.ask("what was appended", fetch(fetch_topic("p-sequences", {0: 0})), 12)


def odd_producers(session: Session) -> None:
    """Producers the partition has not seen, and numbers that do not belong together."""
    create_topic(session, "p-odd")
    producer = new_producer(session)

    def numbered(sequence: int, epoch: int = 0, producer_id: int = producer) -> ProduceRequest:
        fields = {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": sequence}
        return produce("p-odd", batch("a", **fields))

    session.ask("an unknown producer amid a sequence", numbered(5), BY_NAME)
    session.ask("an epoch without producer", numbered(0, producer_id=-1), BY_NAME)
    session.ask("a producer without sequence", numbered(-1, producer_id=producer + 50), BY_NAME)
    session.ask("a producer without epoch", numbered(0, -1, producer_id=producer + 51), BY_NAME)
    session.ask("a sequence below -1", numbered(-2, producer_id=producer + 52), BY_NAME)
    session.ask("an epoch below -1", numbered(0, -2, producer_id=producer + 53), BY_NAME)
    highest = numbered(2**31 - 1, producer_id=producer + 54)
    session.ask("the highest sequence", highest, BY_NAME)
    session.ask("the one after the highest", numbered(0, producer_id=producer + 54), BY_NAME)
    two = concatenated(
        batch("a", producer_id=producer + 55, producer_epoch=0, base_sequence=at) for at in (0, 1)
    )
    session.ask("two batches of one producer", produce("p-odd", two), BY_NAME)
    session.ask("what was appended", fetch(fetch_topic("p-odd", {0: 0})), 12)


def transactional_batches(session: Session) -> None:
    """A transactional batch needs the id of its transaction in the request."""
    create_topic(session, "p-transactional")
    fields = {"producer_id": 77, "producer_epoch": 0, "base_sequence": 0}
    data = batch("a", transactional=True, **fields)
    for version in (3, 8, BY_NAME):
        session.ask("no transactional id", produce("p-transactional", data), version)
    named = produce("p-transactional", batch("a"), transactional_id="tx")
    session.ask("an id without transactional batch", named, BY_NAME)
    session.ask("what was appended", fetch(fetch_topic("p-transactional", {0: 0})), 12)


def broker_topics(session: Session) -> None:
    """Names that are no topics, or topics of the broker's own."""
    for name in ("", ".", "a b", "x" * 250, "__cluster_metadata"):
        session.ask(f"a topic called {name[:20]!r}", produce(name, batch("a")), BY_NAME)


def a_small_broker_log(session: Session) -> None:
    """min.insync.replicas above the number of replicas."""
    create_topic(session, "p-insync", configs={"min.insync.replicas": "2"})
    for acks in (1, -1):
        for version in (3, 8, BY_NAME):
            session.ask(f"acks={acks}", produce("p-insync", batch("a"), acks=acks), version)
    append_count = list_offsets("p-insync", {0: -1})
    session.ask("the end offset", append_count, 7)


def malformed_records(session: Session) -> None:
    """Batches with a right checksum whose records do not parse."""
    create_topic(session, "p-malformed")
    whole = batch("aaaa", "bbbb")
    at = 61
    cases = {
        "a record longer than the batch": whole[:at] + b"\x7e" + whole[at + 1 :],
        "a record of no length": whole[:at] + b"\x00" + whole[at + 1 :],
        "a record of negative length": whole[:at] + b"\x01" + whole[at + 1 :],
        "a key longer than the record": whole[: at + 4] + b"\x7e" + whole[at + 5 :],
        "a negative count of headers": whole[: at + 10] + b"\x01" + whole[at + 11 :],
        "bytes after the records": _lengthened(whole, b"\x00\x00\x00"),
    }
    for about, data in cases.items():
        session.ask(about, produce("p-malformed", _with_right_crc(data)), BY_NAME)
    squeezed = batch("aaaa", "bbbb", compression=Compression.GZIP)
    halved = _shortened(squeezed, 12)
    session.ask("compressed data that ends early", produce("p-malformed", _with_right_crc(halved)), BY_NAME)
    session.ask(
        "a count above the compressed records", produce("p-malformed", _recounted(squeezed, 3)), BY_NAME
    )
    session.ask("what was appended", fetch(fetch_topic("p-malformed", {0: 0})), 12)
    append(session, "p-malformed", batch("z"))


def jumping_offsets(session: Session) -> None:
    """Records whose offsets do not count up, as they came and compressed."""
    create_topic(session, "p-jumping")
    whole = batch("aaaa", "bbbb")
    jumping = whole[:64] + b"\x08" + whole[65:]
    session.ask("as they came", produce("p-jumping", _with_right_crc(jumping)), BY_NAME)
    records = jumping[61:]
    squeezed = _with_attributes(whole[:61] + bytes(compress(Compression.GZIP, records)), Compression.GZIP)
    squeezed = squeezed[:8] + struct.pack(">i", len(squeezed) - 12) + squeezed[12:]
    session.ask("compressed", produce("p-jumping", squeezed), BY_NAME)


def _with_wrong_crc(data: bytes) -> bytes:
    changed = bytearray(data)
    changed[_CRC_FIELD] ^= 0x55
    return bytes(changed)


def _with_right_crc(data: bytes) -> bytes:
    from crc32c import crc32c

    return data[:_CRC_FIELD] + struct.pack(">I", crc32c(data[_CRC_FIELD + 4 :])) + data[_CRC_FIELD + 4 :]


def _recounted(data: bytes, count: int) -> bytes:
    return _with_right_crc(data[:57] + struct.pack(">i", count) + data[61:])


def _with_last_offset_delta(data: bytes, delta: int) -> bytes:
    return _with_right_crc(data[:23] + struct.pack(">i", delta) + data[27:])


def _with_attributes(data: bytes, attributes: int) -> bytes:
    return _with_right_crc(data[:21] + struct.pack(">h", attributes) + data[23:])


def _lengthened(data: bytes, more: bytes) -> bytes:
    return data[:8] + struct.pack(">i", len(data) - 12 + len(more)) + data[12:] + more


def _shortened(data: bytes, by: int) -> bytes:
    return data[:8] + struct.pack(">i", len(data) - 12 - by) + data[12:-by]


def _legacy_message(magic: int) -> bytes:
    """A message of the formats before version 2."""
    times = struct.pack(">q", T0) if magic else b""
    content = bytes([magic, 0]) + times + struct.pack(">i", -1) + struct.pack(">i", 1) + b"a"
    message = struct.pack(">I", zlib.crc32(content)) + content
    return struct.pack(">qi", 0, len(message)) + message


SCENARIOS = (
    every_version,
    acknowledgements,
    several_partitions,
    damaged_batches,
    malformed_records,
    jumping_offsets,
    sizes,
    compacted_topics,
    timestamps,
    codecs,
    idempotent_sequences,
    odd_producers,
    transactional_batches,
    broker_topics,
    a_small_broker_log,
)
